// The judge of planned programs: what it accepts runs alike in every order tried, and each fault is named.
#include "passes/order/check_hazards.h"

#include <gtest/gtest.h>

#include "part_of.h"
#include "passes/planned.h"
#include "sanitizer.h"

namespace plimsoll::passes {
namespace {

using fixtures::PlannedStep;
using ir::MemorySpace;
using ir::StateClass;
using ir::ValueId;

std::string check(const fixtures::PlannedStep& p) {
  const Status status = check_hazards(p.graph, p.binding, p.plan, p.order);
  return status ? "sound" : status.error().message();
}

/// A value goes out and comes back while others are made, one of them by a view; the sum becomes a state, the
/// value too.
///   x ─ silu ─┬─ split ─ gelu ─ concat ─ add ─ y
///             └─ out ── back ────────────┘
struct CheckHazards : ::testing::Test {
  void SetUp() override {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    const ir::TensorType type{ir::DType::kF32, ir::Shape{4, 8}};
    const ValueId x = b.state({"x", type, StateClass::kInput});
    b.set_layer("layers.0");
    const ValueId a = ops::silu(b, x);
    const ValueId out = ops::copy_start(b, a, MemorySpace::kHostPinned);
    b.set_layer("layers.1");
    const auto parts = ops::split(b, a, {2, 6});
    const ValueId host = ops::copy_done(b, out);
    graph.declare_state({"host", type, StateClass::kOutput, MemorySpace::kHostPinned});
    const ValueId wide =
        ops::concat(b, {ops::gelu(b, parts[1], ops::Gelu::kErf), ops::gelu(b, parts[0], ops::Gelu::kErf)});
    const ValueId back = ops::copy_start(b, host, MemorySpace::kDevice);
    b.assign("host", host);
    b.set_layer("layers.2");
    const ValueId y = ops::add(b, ops::copy_done(b, back), ops::gelu(b, wide, ops::Gelu::kErf));
    graph.declare_state({"y", type, StateClass::kOutput});
    b.assign("y", y);
    ASSERT_TRUE(b.status());
    auto p = fixtures::plan_program(std::move(graph));
    ASSERT_TRUE(p) << p.error().message();
    program = std::move(*p);
    ASSERT_EQ(check(program), "sound");
  }

  [[nodiscard]] size_t position(std::string_view op, std::string_view layer) const {
    for (size_t p = 0; p < program.graph.order().size(); ++p)
      if (const ir::Op& o = program.graph.op(program.graph.order()[p]); o.def->name == op && o.layer == layer)
        return p;
    ADD_FAILURE() << op;
    return 0;
  }
  [[nodiscard]] Issue& issue(std::string_view op, std::string_view layer) {
    for (Issue& i : program.order.issues)
      if (i.position == static_cast<int32_t>(position(op, layer))) return i;
    ADD_FAILURE() << op;
    return program.order.issues[0];
  }
  [[nodiscard]] ValueId result(std::string_view op, std::string_view layer) const {
    return program.graph.op(program.graph.order()[position(op, layer)]).outputs[0];
  }
  [[nodiscard]] Place& place(std::string_view op, std::string_view layer) {
    return program.binding.places[static_cast<size_t>(result(op, layer).index)];
  }
  void remove(const Issue& issue) {
    auto& issues = program.order.issues;
    issues.erase(issues.begin() + (&issue - issues.data()));
  }
  /// The first wait of `queue`.
  Issue& wait(ir::Queue queue) {
    for (Issue& i : program.order.issues)
      if (i.kind == Issue::Kind::kWait && i.queue == queue) return i;
    ADD_FAILURE() << "no wait";
    return program.order.issues[0];
  }

  fixtures::PlannedStep program;
};

TEST_F(CheckHazards, AReadThatNothingOrdersBehindItsWriteIsRefused) {
  remove(wait(ir::Queue::kCopyOut));
  EXPECT_EQ(
      check(program),
      "copy_start (layers.0) reads bytes 0..128 of device, which silu (layers.0) may not have written yet: "
      "main");
}

TEST_F(CheckHazards, AWaitBeforeTheRecordIsRefused) {
  Issue& early = wait(ir::Queue::kCompute);
  const Issue moved = early;
  remove(early);
  program.order.issues.insert(program.order.issues.begin(), moved);
  EXPECT_EQ(check(program), "the wait of event " + std::to_string(moved.event) +
                                " on compute is issued before its event is recorded: main");
}

TEST_F(CheckHazards, TheEndComesBehindEveryQueue) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::TensorType type{ir::DType::kF32, ir::Shape{8}};
  const ValueId y = ops::silu(b, b.state({"x", type, StateClass::kInput}));
  graph.declare_state({"host", type, StateClass::kOutput, MemorySpace::kHostPinned});
  b.assign("host", ops::copy_done(b, ops::copy_start(b, y, MemorySpace::kHostPinned)));
  program = *fixtures::plan_program(std::move(graph));
  ASSERT_EQ(check(program), "sound");
  ASSERT_EQ(program.order.issues.back().kind, Issue::Kind::kWait);
  program.order.issues.pop_back();
  EXPECT_EQ(check(program), "the program may end before copy_start: main");
}

TEST_F(CheckHazards, EachOpThatRunsIsIssuedOnceOnItsQueue) {
  const fixtures::PlannedStep whole = program;
  remove(issue("concat", "layers.1"));
  EXPECT_EQ(check(program), "concat: is not issued: layers.1");
  program = whole;
  program.order.issues.push_back(issue("concat", "layers.1"));
  EXPECT_EQ(check(program), "concat: is issued twice: layers.1");
  program = whole;
  issue("copy_start", "layers.1").queue = ir::Queue::kCopyOut;
  EXPECT_EQ(check(program), "copy_start: is issued on copy_out, belongs on copy_in: layers.1");
  program = whole;
  issue("concat", "layers.1").kind = Issue::Kind::kCopy;
  EXPECT_EQ(check(program), "concat: has a kernel, is issued as a copy: layers.1");
  program = whole;
  issue("concat", "layers.1").position = static_cast<int32_t>(position("split", "layers.1"));
  EXPECT_EQ(check(program), "split: is issued, and there is nothing to run: layers.1");
  program = whole;
  issue("concat", "layers.1").position = 1000;
  EXPECT_EQ(check(program), "an issue names an op that is not in the program");
}

TEST_F(CheckHazards, BytesAreWhereTheGraphPutsThem) {
  const fixtures::PlannedStep whole = program;
  place("split", "layers.1").offset_bytes += 4;
  EXPECT_EQ(check(program), "split: a view does not lie where its operand does: layers.1");
  program = whole;
  place("concat", "layers.1").storage = place("copy_start", "layers.0").storage;
  EXPECT_EQ(check(program), "concat: a value of device is bound in host_pinned: layers.1");
  program = whole;
  place("copy_start", "layers.0").storage = -1;
  EXPECT_EQ(check(program), "copy_start: a value has no storage: layers.0");
  program = whole;
  program.plan.offsets[static_cast<size_t>(place("copy_start", "layers.1").storage)] = -1;
  EXPECT_EQ(check(program), "copy_start: a value has no bytes in the arena: layers.1");
  program = whole;
  std::swap(place("copy_start", "layers.0").strides[0], place("copy_start", "layers.0").strides[1]);
  EXPECT_EQ(check(program), "copy_start: a copy's operand or result is not dense: layers.0");
  program = whole;
  std::swap(place("add", "layers.2").strides[0], place("add", "layers.2").strides[1]);
  EXPECT_EQ(check(program), "state_assign: the value is not dense: layers.2");
  program = whole;
  place("state", "").offset_bytes = 4;
  EXPECT_EQ(check(program), "state: the value does not lie in its state");
  program = whole;
  place("add", "layers.2") = place("gelu", "layers.2");
  EXPECT_EQ(check(program),
            "state_assign: the value neither lies in its state nor is copied there: layers.2");
}

TEST_F(CheckHazards, ScratchIsNobodysElse) {
  const int32_t scratch = program.binding.workspaces[position("concat", "layers.1")];
  ASSERT_GE(scratch, 0);
  auto& offsets = program.plan.offsets;
  offsets[static_cast<size_t>(scratch)] = offsets[static_cast<size_t>(place("concat", "layers.1").storage)];
  EXPECT_NE(check(program).find("concat (layers.1) writes bytes"), std::string::npos) << check(program);
}

TEST_F(CheckHazards, AStateHoldsAtTheEndWhatItHeldOrWasAssigned) {
  place("gelu", "layers.2") = place("state", "");  // which nothing reads any more
  EXPECT_EQ(check(program),
            "the end reads bytes 0..128 of state \"x\" as they were before the program, where gelu "
            "(layers.2) wrote "
            "them last: main");
}

/// A cache in a state, of which an op takes over the storage through a view; its result is copied to "y" and,
/// if `keep`, is what the state holds afterwards.
fixtures::PlannedStep cache_program(bool keep) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ValueId flat = b.state({"cache", {ir::DType::kF32, ir::Shape{2, 24}}, StateClass::kCache});
  const ValueId x = b.state({"x", {ir::DType::kF32, ir::Shape{2, 1, 1, 4}}, StateClass::kInput});
  const ValueId start = b.state({"start", {ir::DType::kI32, ir::Shape{2}}, StateClass::kInput});
  const ValueId next = ops::cache_update(b, ops::reshape(b, flat, {2, 6, 1, 4}), x, start);
  graph.declare_state({"y", b.type(next), StateClass::kOutput});
  b.assign("y", next);
  if (keep) b.assign("cache", ops::reshape(b, next, {2, 24}));
  return *fixtures::plan_program(std::move(graph));
}

TEST_F(CheckHazards, AStateThatAnOpHasTakenHoldsNothingUntilItIsAssigned) {
  EXPECT_EQ(check(cache_program(false)), "sound");
  program = cache_program(true);
  EXPECT_EQ(check(program), "sound");
  Storage offloaded = program.binding.storages[0];
  offloaded.state = -1;
  place("cache_update", "").storage = static_cast<int32_t>(program.binding.storages.size());
  program.binding.storages.push_back(offloaded);
  program.plan.offsets.push_back(0);
  EXPECT_EQ(check(program), "cache_update: a result does not lie where the operand that it consumes does");
}

// ---- random programs
// --------------------------------------------------------------------------------------------

bool same(const IssueOrder& a, const IssueOrder& b) {
  return a.num_events == b.num_events && std::equal(a.issues.begin(), a.issues.end(), b.issues.begin(),
                                                    b.issues.end(), [](const Issue& x, const Issue& y) {
                                                      return x.kind == y.kind && x.queue == y.queue &&
                                                             x.position == y.position && x.event == y.event;
                                                    });
}

/// Of three hundred programs.
TEST(RandomHazards, ProgramsWithCopiesAreSoundAndPlannedAlikeTwice) {
  int64_t programs = 0, tried = 0, copies = 0, events = 0;
  for (uint64_t seed = 1; programs < cases_here(300); ++seed) {
    if (fixtures::is_large(seed)) continue;
    ++programs;
    if (!in_part(seed, 3)) continue;
    ++tried;
    const auto p = fixtures::planned_program(seed, static_cast<int64_t>(seed % 8));
    ASSERT_TRUE(p) << "seed " << seed << ": " << p.error().message();
    ASSERT_EQ(check(*p), "sound") << "seed " << seed;
    const auto again = fixtures::planned_program(seed, static_cast<int64_t>(seed % 8));
    ASSERT_TRUE(again->plan.offsets == p->plan.offsets && same(again->order, p->order)) << "seed " << seed;
    const fixtures::IssueSimulator simulator(p->graph, p->binding, p->plan);
    const auto difference = fixtures::QueueSimulator(simulator.program(p->order)).random_orders(10, seed);
    ASSERT_FALSE(difference.changed) << "seed " << seed << " issue " << difference.step;
    events += p->order.num_events;
    for (const Issue& i : p->order.issues) copies += i.kind == Issue::Kind::kCopy ? 1 : 0;
  }
  std::printf("%ld programs: %ld copies, %ld events\n", tried, copies, events);
  EXPECT_GT(copies, 4 * tried);
}

TEST(RandomHazards, ProgramsIssuedOneByOneAreSound) {
  for (uint64_t seed = 1; seed < 40; ++seed) {
    if (fixtures::is_large(seed)) continue;
    auto p = fixtures::planned_program(seed, 4);
    ASSERT_TRUE(p) << "seed " << seed << ": " << p.error().message();
    p->order = fixtures::one_by_one(p->graph, p->binding);
    ASSERT_EQ(check(*p), "sound") << "seed " << seed;
  }
}

}  // namespace
}  // namespace plimsoll::passes
