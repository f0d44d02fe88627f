// What the ranks exchange in the programs of several micro-batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "backends/cpu/cpu_target.h"
#include "ir/op_def.h"
#include "planner/programs/step_programs.h"
#include "planner/small_step.h"

namespace plimsoll::planner {
namespace {

using passes::ProgramRole;

constexpr int64_t kRanks = 3;

class RankPrograms : public testing::Test {
 protected:
  /// Each rank updates its piece.
  static StepOptions shared(bool in_last) {
    StepOptions o = options(1, 16);
    o.accumulate = true;
    o.ranks = o.optimizer.ranks = kRanks;
    o.pipeline.overlaps_ranks = true;
    o.sums_in_last = in_last;
    return o;
  }
  TrainingPrograms built(bool in_last, bool shares) {
    StepOptions o = shared(in_last);
    if (!shares) o.optimizer.ranks = 1;
    auto programs = build_training_programs(*model_, o, target_);
    EXPECT_TRUE(programs) << programs.error().message();
    return std::move(*programs);
  }
  static const passes::Program& program(const TrainingPrograms& all, ProgramRole role) {
    return all.session.programs.at(static_cast<size_t>(all.session.find_program({role})));
  }
  static int64_t count(const passes::Program& program, std::string_view op) {
    return std::ranges::count_if(program.graph.order(),
                                 [&](ir::OpId id) { return program.graph.op(id).def->name == op; });
  }
  /// Places of sums over ranks that stand before the last op of backward.
  static int64_t hidden(const passes::Program& program) {
    int64_t before = 0, sums = 0;
    for (const ir::OpId id : program.graph.order()) {
      const ir::Op& op = program.graph.op(id);
      if (op.def->name == "exchange") ++sums;
      if (op.block != ir::kUpdateBlock) before = sums;
    }
    return before;
  }
  const cpu::CpuTarget target_{2};
  const std::unique_ptr<models::Model> model_ = tiny_llama(4);
};

class SumsInLast : public RankPrograms, public testing::WithParamInterface<bool> {};

TEST_P(SumsInLast, TakesTheSumsFromTheUpdateIntoBackward) {
  const TrainingPrograms behind = built(false, GetParam()), within = built(true, GetParam());
  ASSERT_LT(behind.session.find_program({ProgramRole::kMicroLast}), 0);
  const passes::Program &last = program(within, ProgramRole::kMicroLast),
                        &next = program(within, ProgramRole::kMicroNext);
  const int64_t cut = count(program(behind, ProgramRole::kUpdate), "exchange");
  EXPECT_GE(cut, 10);
  EXPECT_EQ(count(program(within, ProgramRole::kUpdate), "exchange"), 0);
  EXPECT_EQ(count(next, "exchange"), 0);
  EXPECT_EQ(count(last, "exchange"), cut);
  EXPECT_GE(hidden(last), cut - 4) << "all but the last gradients";
  EXPECT_LE(last.binding.copied_assigns.size(),
            next.binding.copied_assigns.size() + model_->parameters().size() - static_cast<size_t>(cut))
      << "what is cut is summed where its accumulator lies";
}

/// Of the ranks' gradients as many more are alive as a block has, in one piece a rank.
TEST_P(SumsInLast, HoldsABlocksGradientsMore) {
  const TrainingPrograms all = built(true, GetParam());
  const int64_t last = program(all, ProgramRole::kMicroLast).plan.device().arena_bytes,
                next = program(all, ProgramRole::kMicroNext).plan.device().arena_bytes;
  int64_t block = 0, largest = 0;
  for (const models::Parameter& p : model_->parameters()) {
    if (p.block == 0) block += 4 * p.shape.num_elements();
    largest = std::max(largest, 4 * p.shape.num_elements());
  }
  EXPECT_LE(last, next + 2 * std::max(block, largest));
}

TEST_P(SumsInLast, AStepMovesAsManyBytes) {
  const StepCost behind = built(false, GetParam()).cost, within = built(true, GetParam()).cost;
  EXPECT_EQ(within.network_bytes, behind.network_bytes);
  EXPECT_NEAR(within.update_network_bytes, behind.update_network_bytes, 1);
  EXPECT_NEAR(within.update_flops, behind.update_flops, 1e-9 * behind.update_flops);
}

/// The others find whole what the first has gathered, although all begin alike.
TEST_F(RankPrograms, TheFirstMicroBatchAloneGathersLate) {
  StepOptions o = shared(/*in_last=*/true);
  o.gathers_late = true;
  const auto programs = build_training_programs(*model_, o, target_);
  ASSERT_TRUE(programs) << programs.error().message();
  EXPECT_GT(count(program(*programs, ProgramRole::kMicroFirst), "all_gather"), 10);
  for (const ProgramRole role : {ProgramRole::kMicroNext, ProgramRole::kMicroLast, ProgramRole::kUpdate})
    EXPECT_EQ(count(program(*programs, role), "all_gather"), 0) << passes::name(role);
}

INSTANTIATE_TEST_SUITE_P(Updates, SumsInLast, testing::Bool(),
                         [](const auto& shares) { return std::string(shares.param ? "shared" : "whole"); });

}  // namespace
}  // namespace plimsoll::planner
