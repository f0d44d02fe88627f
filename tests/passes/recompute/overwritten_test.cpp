#include "passes/recompute/overwritten.h"

#include <gtest/gtest.h>

#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/memory/memory_plan.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::Shape;
using ir::ValueId;

/// y = silu(x); z = y + x, over y where `in_place`; w grows by z.
struct Bound {
  ir::Graph graph;
  Binding binding;
  ir::OpId sum;
};
Bound bound(bool in_place) {
  Bound b;
  ir::Builder builder(b.graph, ops::find_op);
  const ValueId x = builder.state({"x", {DType::kF32, Shape{5, 7}}, ir::StateClass::kInput});
  const ValueId y = ops::silu(builder, x), z = ops::add(builder, y, x);
  b.graph.declare_state({"z", {DType::kF32, Shape{5, 7}}, ir::StateClass::kOutput});
  builder.assign("z", ops::silu(builder, z));
  b.sum = b.graph.value(z).producer;
  BindOptions options;
  if (in_place) options.in_place = {{b.sum, {0, 0}}};
  options.runs_twice = true;
  b.binding = *bind_storage(b.graph, options, ops::find_op);
  return b;
}

TEST(Overwritten, IsWhatHoldsAnOperandAndAResult) {
  const Bound apart = bound(false), over = bound(true);
  EXPECT_TRUE(overwritten(apart.graph, apart.binding, apart.graph.op(apart.sum)).empty());
  const auto ranges = overwritten(over.graph, over.binding, over.graph.op(over.sum));
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_EQ(ranges[0].end - ranges[0].begin, 5 * 7 * 4);
  EXPECT_EQ(double_run_bytes(ranges), 192);
}

TEST(Overwritten, HasASecondPlaceInThePlan) {
  const Bound over = bound(true);
  int places = 0;
  for (size_t p = 0; p < over.graph.order().size(); ++p) {
    const int32_t storage = over.binding.double_runs[p];
    if (storage < 0) continue;
    ++places;
    const Storage& s = over.binding.storages[static_cast<size_t>(storage)];
    EXPECT_EQ(over.graph.order()[p], over.sum);
    EXPECT_EQ(s.bytes, 192);
    EXPECT_EQ(s.first, static_cast<int32_t>(p));
    EXPECT_EQ(s.last, static_cast<int32_t>(p));
  }
  EXPECT_EQ(places, 1);
}

TEST(Overwritten, KeepsTheDistanceToALine) {
  EXPECT_EQ(double_run_bytes({{0, 60, 68}}), 128);
  EXPECT_EQ(double_run_bytes({{0, 64, 68}, {1, 4, 8}}), 128);
}

}  // namespace
}  // namespace plimsoll::passes
