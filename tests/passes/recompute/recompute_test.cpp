#include "passes/recompute/recompute.h"

#include <gtest/gtest.h>

#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/memory/storage_groups.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::OpId;
using ir::Shape;
using ir::ValueId;

/// y = silu(x), z = silu(y); then, behind forward, silu of y seen as a row.
TEST(Recompute, ReadsItsOwnViewOfACloneAsItIs) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const auto block = b.block(0, "layers.0");
  const ValueId x = b.state({"x", {DType::kF32, Shape{2, 6}}, ir::StateClass::kInput});
  const ValueId y = ops::silu(b, x), z = ops::silu(b, y);
  const ValueId row = ops::reshape(b, y, {12}), last = ops::silu(b, row);
  graph.declare_state({"last", {DType::kF32, Shape{12}}, ir::StateClass::kOutput});
  b.assign("last", last);
  ASSERT_TRUE(b.status().ok());

  const auto report = recompute(graph, {.last_forward_op = graph.value(z).producer, .dropped = {y}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->clones, 1U);
  const ValueId clone = graph.op(graph.value(row).producer).inputs[0];
  EXPECT_NE(clone, y);
  EXPECT_EQ(graph.op(graph.value(clone).producer).inputs[0], x);
  EXPECT_TRUE(graph.op(graph.value(clone).producer).recomputed);
  EXPECT_EQ(graph.op(graph.value(last).producer).inputs[0], row);
  EXPECT_EQ(graph.op(graph.value(z).producer).inputs[0], y) << "forward reads what it made";
}

}  // namespace
}  // namespace plimsoll::passes
