// Where values come to lie: views, in-place results, assignments written where they end up, copies only where
// needed.
#include "passes/memory/bind_storage.h"

#include <gtest/gtest.h>

#include <functional>

#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/pointwise.h"
#include "passes/memory/memory_plan.h"

namespace plimsoll::passes {
namespace {

using ir::StateClass;
using ir::ValueId;

ir::StateDecl decl(const std::string& name, ir::Shape shape, StateClass c = StateClass::kInput) {
  return {name, {ir::DType::kF32, shape}, c};
}

Place place(const Binding& binding, ValueId v) { return binding.places[static_cast<size_t>(v.index)]; }

Binding bind(ir::Graph& graph, bool strided = true,
             std::vector<std::pair<ir::OpId, ir::Alias>> in_place = {}) {
  BindOptions options;
  options.in_place = std::move(in_place);
  options.device.accepts_strided = [=](std::string_view, size_t) { return strided; };
  auto binding = bind_storage(graph, options, ops::find_op);
  EXPECT_TRUE(binding.ok()) << (binding.ok() ? "" : binding.error().message());
  return std::move(*binding);
}

struct Fixture : testing::Test {
  ir::Graph graph;
  ir::Builder b{graph, ops::find_op};
};
using BindStorageTest = Fixture;

TEST_F(BindStorageTest, ViewsShareTheStorageOfTheirSource) {
  const ValueId x = b.state(decl("x", {2, 5, 24}));
  const auto parts = ops::split(b, x, {8, 16});
  const ValueId heads = ops::reshape(b, parts[1], {2, 5, 4, 4});
  b.assign("x", x);
  const Binding binding = bind(graph);
  EXPECT_EQ(place(binding, heads).storage, place(binding, x).storage);
  EXPECT_EQ(place(binding, heads).offset_bytes, 8 * 4);
  const auto s = place(binding, heads).strides;
  EXPECT_EQ(s[0], 5 * 24);
  EXPECT_EQ(s[1], 24);
  EXPECT_EQ(s[2], 4);
  EXPECT_EQ(s[3], 1);
}

TEST_F(BindStorageTest, AReshapeThatStridesCannotExpressCopies) {
  const ValueId x = b.state(decl("x", {2, 3, 8}));
  const auto parts = ops::split(b, x, {4, 4});
  const ValueId flat = ops::reshape(b, parts[0], {24});
  graph.declare_state(decl("y", {24}, StateClass::kOutput));
  b.assign("y", ops::scale(b, flat, ops::fill(b, {1}, 2.0)));
  const Binding binding = bind(graph);
  EXPECT_NE(place(binding, flat).storage, place(binding, x).storage);
  int copies = 0;
  for (const ir::OpId id : graph.order()) copies += graph.op(id).def->name == "copy";
  EXPECT_EQ(copies, 1);
}

TEST_F(BindStorageTest, CopiesAViewForAKernelThatNeedsItDense) {
  const ValueId x = b.state(decl("x", {2, 8}));
  const ValueId y = ops::silu(b, ops::split(b, x, {4, 4})[1]);
  graph.declare_state(decl("y", {2, 4}, StateClass::kOutput));
  b.assign("y", y);
  ir::Graph other = graph;
  bind(graph, /*strided=*/true);
  bind(other, /*strided=*/false);
  EXPECT_EQ(other.order().size(), graph.order().size() + 1);
}

int copies_in(const ir::Graph& graph) {
  int copies = 0;
  for (const ir::OpId id : graph.order()) copies += graph.op(id).def->name == "copy" ? 1 : 0;
  return copies;
}

/// Kernels that take views take rows one stride apart, of the last axis or of heads and their size.
TEST(BindStorage, CopiesViewsThatAreNoRows) {
  const auto copies_for = [](const std::function<ValueId(ir::Builder&)>& build) {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    const ValueId y = build(b);
    graph.declare_state({.name = "y", .type = graph.type(y), .state_class = StateClass::kOutput});
    b.assign("y", y);
    EXPECT_TRUE(b.status().ok());
    bind(graph);
    return copies_in(graph);
  };
  const auto part = [](ir::Builder& b, ir::Shape shape, int64_t axis, int64_t size) {
    return ops::slice(b, b.state(decl("x", shape)), axis, 1, size);
  };
  EXPECT_EQ(copies_for([&](auto& b) { return ops::silu(b, part(b, {2, 3, 8}, 2, 4)); }), 0);
  EXPECT_EQ(copies_for([&](auto& b) {
              return ops::silu(b, part(b, {2, 3, 8}, 1, 2));
            }),
            1)
      << "not one stride";
  EXPECT_EQ(copies_for([&](auto& b) { return ops::silu(b, part(b, {4, 3, 8}, 0, 2)); }), 0) << "dense";
  const auto turned = [](ir::Builder& b) { return ops::permute(b, b.state(decl("x", {4, 3})), {1, 0}); };
  EXPECT_EQ(copies_for([&](auto& b) { return ops::silu(b, turned(b)); }), 1);
  EXPECT_EQ(copies_for([&](auto& b) { return ops::pointwise(b, "exp(x0)", {turned(b)}); }), 0);
  EXPECT_EQ(copies_for([&](auto& b) {
              return ops::silu(b, ops::expand(b, b.state(decl("x", {1, 3})), {4, 3}));
            }),
            1);
  EXPECT_EQ(copies_for([&](auto& b) { return turned(b); }), 1) << "a state is dense";
  const auto heads = [&](ir::Builder& b) {
    return ops::reshape(b, part(b, {2, 3, 24}, 2, 16), {2, 3, 4, 4});
  };
  EXPECT_EQ(copies_for([&](auto& b) { return ops::silu(b, heads(b)); }), 0);
  EXPECT_EQ(copies_for([&](auto& b) {
              return ops::linear(b, heads(b), b.state(decl("w", {5, 4})), {});
            }),
            1)
      << "rows of the last axis are in groups";
}

TEST_F(BindStorageTest, AnAssignedValueIsWrittenToItsStateFromTheStart) {
  const ValueId x = b.state(decl("x", {4}));
  const ValueId y = ops::add(b, x, x);
  graph.declare_state(decl("y", {4}, StateClass::kOutput));
  b.assign("y", y);
  const Binding binding = bind(graph);
  EXPECT_TRUE(binding.copied_assigns.empty());
  EXPECT_GE(binding.storages[static_cast<size_t>(place(binding, y).storage)].state, 0);
  EXPECT_EQ(plan_memory(graph, binding).device().arena_bytes, 0);
}

TEST_F(BindStorageTest, AnAssignmentCopiesWhileTheOldContentsAreStillRead) {
  const ValueId x = b.state(decl("x", {4}));
  const ValueId y = ops::add(b, x, x);
  const ValueId z = ops::mul(b, x, y);  // reads x after y is there
  graph.declare_state(decl("z", {4}, StateClass::kOutput));
  b.assign("z", z);
  b.assign("x", y);
  const Binding binding = bind(graph);
  EXPECT_EQ(binding.copied_assigns.size(), 1U);
  EXPECT_LT(binding.storages[static_cast<size_t>(place(binding, y).storage)].state, 0);
}

/// The state "x" in two windows, the first of which becomes another value; `then` reads something behind it.
ValueId assign_window(ir::Builder& b, const std::function<ValueId(const std::vector<ValueId>&)>& then) {
  const auto parts = ops::split(b, b.state(decl("x", {8})), {3, 5});
  const ValueId next = ops::silu(b, ops::fill(b, {3}, 2.0));
  b.graph().declare_state(decl("z", {3}, StateClass::kOutput));
  b.assign("z", then(parts));
  b.ops("state_assign", {next}, {{"name", std::string("x")}, {"begin", int64_t{0}}});
  return next;
}

TEST_F(BindStorageTest, AWindowIsWrittenIntoItsStateWhileOthersAreRead) {
  const ValueId next = assign_window(b, [&](const auto& parts) {
    return ops::silu(b, ops::split(b, parts[1], {3, 2})[0]);
  });
  const Binding binding = bind(graph);
  EXPECT_TRUE(binding.copied_assigns.empty());
  EXPECT_GE(binding.storages[static_cast<size_t>(place(binding, next).storage)].state, 0);
  EXPECT_EQ(place(binding, next).offset_bytes, 0);
}

TEST_F(BindStorageTest, AWindowIsCopiedWhereItIsStillRead) {
  const ValueId next = assign_window(b, [&](const auto& parts) { return ops::silu(b, parts[0]); });
  const Binding binding = bind(graph);
  EXPECT_EQ(binding.copied_assigns.size(), 1U);
  EXPECT_LT(binding.storages[static_cast<size_t>(place(binding, next).storage)].state, 0);
}

TEST_F(BindStorageTest, WhatADiskMovesBeginsWithAPage) {
  const ValueId small = ops::fill(b, {16}, 1.0), large = ops::fill(b, {1 << 15}, 1.0);
  const ValueId copy = ops::copy_start(b, large, ir::MemorySpace::kDisk);
  graph.declare_state(decl("y", {16}, StateClass::kOutput));
  b.assign("y", ops::copy(b, small));
  const ValueId done = ops::copy_done(b, copy);
  graph.declare_state({"z", {ir::DType::kF32, {1 << 15}}, StateClass::kOutput, ir::MemorySpace::kDisk});
  b.assign("z", done);
  const Binding binding = bind(graph);
  const auto on_pages = [&](ValueId v) {
    return binding.storages[static_cast<size_t>(place(binding, v).storage)].on_pages;
  };
  EXPECT_TRUE(on_pages(large));
  EXPECT_FALSE(on_pages(small));
  const MemoryPlan plan = plan_memory(graph, binding);
  EXPECT_EQ(plan.offsets[static_cast<size_t>(place(binding, large).storage)] % kPageBytes, 0);
}

TEST_F(BindStorageTest, RejectsAReadOfWhatAnInPlaceResultHasOverwritten) {
  const ValueId x = b.state(decl("x", {4}));
  const ValueId y = ops::add(b, x, x);
  const ValueId z = ops::silu(b, y);
  graph.declare_state(decl("z", {4}, StateClass::kOutput));
  b.assign("z", ops::add(b, z, y));  // y is read after z took its place
  BindOptions options;
  options.in_place = {{graph.value(z).producer, {0, 0}}};
  const auto binding = bind_storage(graph, options, ops::find_op);
  ASSERT_FALSE(binding.ok());
  EXPECT_NE(binding.error().what.find("overwritten"), std::string::npos);
}

/// A result in the place of an operand that has fewer axes has strides of its own.
TEST_F(BindStorageTest, AnInPlaceResultMayHaveMoreAxesThanItsOperand) {
  const ValueId x = b.state(decl("x", {3, 1}));
  const ValueId one = b.state(decl("one", {1, 1, 1, 1}));
  const ValueId y = ops::silu(b, x);
  const ValueId z = ops::pointwise(b, "mul(x0,x1)", {y, one});
  ASSERT_EQ(graph.type(z).shape, (ir::Shape{1, 1, 3, 1}));
  graph.declare_state(decl("z", {1, 1, 3, 1}, StateClass::kOutput));
  b.assign("z", ops::silu(b, z));
  const Binding binding = bind(graph, true, {{graph.value(z).producer, {0, 0}}});
  EXPECT_EQ(place(binding, z).storage, place(binding, y).storage);
  EXPECT_EQ(place(binding, z).strides, ir::dense_strides({1, 1, 3, 1}));
}

TEST_F(BindStorageTest, LifetimesEndWithTheLastReadThroughAnyView) {
  const ValueId x = b.state(decl("x", {2, 8}));
  const ValueId y = ops::add(b, x, x);
  const auto parts = ops::split(b, y, {4, 4});
  const ValueId early = ops::silu(b, x);
  const ValueId late = ops::silu(b, parts[1]);
  graph.declare_state(decl("a", {2, 8}, StateClass::kOutput));
  graph.declare_state(decl("b", {2, 4}, StateClass::kOutput));
  b.assign("a", early);
  b.assign("b", late);
  const Binding binding = bind(graph);
  const Storage& s = binding.storages[static_cast<size_t>(place(binding, y).storage)];
  EXPECT_EQ(graph.order()[static_cast<size_t>(s.last)], graph.value(late).producer);
}

TEST_F(BindStorageTest, PlanAddsUpAndIsWholePages) {
  const ValueId x = b.state(decl("x", {100, 7}));
  ValueId y = x;
  for (int i = 0; i < 5; ++i) y = ops::silu(b, y);
  graph.declare_state(decl("y", {100, 7}, StateClass::kOutput));
  b.assign("y", y);
  const Binding binding = bind(graph);
  const MemoryPlan plan = plan_memory(graph, binding);
  EXPECT_EQ(plan.device().arena_bytes % kPageBytes, 0);
  EXPECT_EQ(
      plan.device().live_bytes_at_peak + plan.device().padding_bytes + plan.device().fragmentation_bytes(),
      plan.device().arena_bytes);
  EXPECT_GE(plan.device().fragmentation_bytes(), 0);
  const MemoryPlan separate = plan_memory(graph, binding, {.separate = true});
  EXPECT_GT(separate.device().arena_bytes, plan.device().arena_bytes);
}

}  // namespace
}  // namespace plimsoll::passes
