// Mutation test of the judge: over programs with copies on queues, each event, copy's end and dependency is
// removed or moved in turn. Every mutant whose result can change is found, and no event is needless.
// PLIMSOLL_FUZZ_SECONDS lets it run for longer, PLIMSOLL_FUZZ_SEED starts it elsewhere.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <map>

#include "mutants.h"
#include "part_of.h"
#include "passes/order/check_hazards.h"
#include "sanitizer.h"

namespace plimsoll::passes {
namespace {

using fixtures::IssueSimulator;
using fixtures::Mutant;
using fixtures::PlannedStep;
using fixtures::QueueSimulator;

struct Figures {
  int64_t mutants = 0, harmful = 0, found = 0, refused = 0;
};

/// Judges the program and its mutants, and what the simulator says to them.
class Jury {
 public:
  using Simulate = std::function<fixtures::Difference(const fixtures::QueueSimulator&)>;
  explicit Jury(Simulate simulate) : simulate_(std::move(simulate)) {}

  void sit(const fixtures::PlannedStep& p, uint64_t seed, bool events_alone) {
    const fixtures::IssueSimulator original(p.graph, p.binding, p.plan);
    const auto judge = [&](const fixtures::Mutant& m) {
      const bool replanned = &m.binding != &p.binding || &m.plan != &p.plan;
      note(m.kind, check_hazards(p.graph, m.binding, m.plan, m.order),
           simulate_(fixtures::QueueSimulator(
               replanned ? fixtures::IssueSimulator(p.graph, m.binding, m.plan).program(m.order)
                         : original.program(m.order))),
           seed);
    };
    judge({"none", p.binding, p.plan, p.order});
    fixtures::Mutations mutations(p, seed, judge);
    mutations.without_events();
    mutations.moved_events();
    mutations.forgotten_dependencies();
    if (events_alone) return;
    mutations.forgotten_dones();
    mutations.moved_work();
    mutations.moved_storages(10);
  }

  void print(int64_t programs) const {
    Figures all;
    for (const auto& [kind, row] : table_) {
      std::printf("%-32s %6ld mutants %6ld harmful %6ld found %6ld refused\n", kind.c_str(), row.mutants,
                  row.harmful, row.found, row.refused);
      all.mutants += row.mutants;
      all.harmful += row.harmful;
      all.found += row.found;
    }
    std::printf("%ld programs: %ld mutants, %ld harmful, %ld found\n", programs, all.mutants, all.harmful,
                all.found);
    EXPECT_EQ(all.found, all.harmful);
    EXPECT_GT(all.harmful, 20 * programs);
  }

 private:
  void note(const std::string& kind, const Status& status, const fixtures::Difference& difference,
            uint64_t seed) {
    Figures& row = table_[kind];
    ++row.mutants;
    row.harmful += difference.changed;
    row.refused += !status;
    row.found += difference.changed && !status;
    const std::string what = "seed " + std::to_string(seed) + ": " + kind;
    EXPECT_FALSE(status && difference.changed) << what << ", seen by issue " << difference.step;
    EXPECT_TRUE(status || kind != "none") << what << ": " << status.error().message();
    EXPECT_FALSE(status && kind.ends_with(" removed")) << what << ", and nothing is lost";
  }

  Simulate simulate_;
  std::map<std::string, Figures> table_;
};

TEST(HazardMutations, EveryHarmfulOneIsFound) {
  const char* seconds = std::getenv("PLIMSOLL_FUZZ_SECONDS");
  const char* first = std::getenv("PLIMSOLL_FUZZ_SEED");
  uint64_t seed = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  const uint64_t last = seed + static_cast<uint64_t>(cases_here(20));
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 0);
  int64_t programs = 0;
  Jury jury([&](const fixtures::QueueSimulator& simulator) { return simulator.many_orders(10, seed); });
  for (; seed < last || std::chrono::steady_clock::now() < end; ++seed) {
    if (fixtures::is_large(seed) || (!kSanitizer && !in_part(seed, 3))) continue;
    const auto p = fixtures::planned_program(seed, 4);
    ASSERT_TRUE(p) << "seed " << seed << ": " << p.error().message();
    ++programs;
    jury.sit(*p, seed, false);
    if (::testing::Test::HasFailure()) return;
  }
  jury.print(programs);
}

/// Four to seven elementwise ops on some of the values before.
ir::Graph tiny_program(uint64_t seed) {
  fixtures::Dice dice(seed);
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::TensorType type{ir::DType::kF32, ir::Shape{4}};
  std::vector<ir::ValueId> values = {b.state({"x", type, ir::StateClass::kInput})};
  const auto any = [&] {
    return values[static_cast<size_t>(dice.range(0, static_cast<int64_t>(values.size()) - 1))];
  };
  for (int64_t i = dice.range(4, 7); i > 0; --i)
    values.push_back(dice.chance(40) ? ops::silu(b, any()) : ops::add(b, any(), values.back()));
  graph.declare_state({"y", type, ir::StateClass::kOutput});
  b.assign("y", values.back());
  fixtures::RandomOffload(graph, seed).insert(dice.range(1, 2));
  return graph;
}

TEST(HazardMutations, OfTinyProgramsInEveryOrder) {
  Jury jury([](const fixtures::QueueSimulator& simulator) {
    const fixtures::Difference difference = simulator.every_order(200'000);
    EXPECT_LT(difference.orders, 200'000);
    return difference;
  });
  int64_t programs = 0;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(cases_here(120)); ++seed) {
    const auto p = fixtures::plan_program(tiny_program(seed));
    ASSERT_TRUE(p) << "seed " << seed << ": " << p.error().message();
    ++programs;
    jury.sit(*p, seed, true);
    if (::testing::Test::HasFailure()) return;
  }
  jury.print(programs);
}

size_t place_of(const ir::Graph& graph, ir::OpId id) {
  return static_cast<size_t>(std::find(graph.order().begin(), graph.order().end(), id) -
                             graph.order().begin());
}

ir::Graph with_op_at(const ir::Graph& graph, size_t from, size_t to) {
  ir::Graph moved = graph;
  std::vector<ir::OpId> order = graph.order();
  const ir::OpId id = order[from];
  order.erase(order.begin() + static_cast<int64_t>(from));
  order.insert(order.begin() + static_cast<int64_t>(to), id);
  moved.set_order(std::move(order));
  return moved;
}

TEST(HazardMutations, ADoneMayStandAnywhereBetweenItsStartAndItsFirstUseAndNowhereElse) {
  int64_t dones = 0;
  for (uint64_t seed = 1; seed < (kSanitizer ? 5 : 20); ++seed) {
    if (fixtures::is_large(seed)) continue;
    const ir::Graph graph = fixtures::planned_program(seed, 4)->graph;
    const auto uses = graph.uses();
    for (size_t p = 0; p < graph.order().size(); ++p) {
      const ir::Op& op = graph.op(graph.order()[p]);
      if (op.def->name != "copy_done") continue;
      ++dones;
      const ir::OpId start = graph.value(op.inputs[0]).producer;
      const auto users = uses[static_cast<size_t>(op.outputs[0].index)];
      ASSERT_FALSE(users.empty());
      for (const size_t to : {place_of(graph, start) + 1, place_of(graph, users[0]) - 1}) {
        const auto planned = fixtures::plan_program(with_op_at(graph, p, to));
        ASSERT_TRUE(planned) << planned.error().message();
        const Status status = check_hazards(planned->graph, planned->binding, planned->plan, planned->order);
        ASSERT_TRUE(status) << status.error().message();
        const fixtures::IssueSimulator simulator(planned->graph, planned->binding, planned->plan);
        ASSERT_FALSE(
            fixtures::QueueSimulator(simulator.program(planned->order)).random_orders(5, seed).changed);
      }
      EXPECT_FALSE(ir::verify(with_op_at(graph, p, place_of(graph, users[0]))));
      EXPECT_FALSE(ir::verify(with_op_at(graph, p, place_of(graph, start))));
      ir::Graph without = graph;
      without.replace_uses(op.outputs[0], op.inputs[0]);
      without.remove_ops([&](ir::OpId id) { return id == graph.order()[p]; });
      EXPECT_FALSE(ir::verify(without));
    }
  }
  EXPECT_GT(dones, kSanitizer ? 10 : 100);
}

}  // namespace
}  // namespace plimsoll::passes
