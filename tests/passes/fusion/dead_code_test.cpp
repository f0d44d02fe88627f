#include "passes/fusion/dead_code.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/printer.h"
#include "ops/op_list.h"
#include "ops/ops.h"

namespace plimsoll::passes {
namespace {

TEST(EmptyRemovedOps, LetsGoOfWhatTheyHeldAndOfNothingElse) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId x = b.state({"x", {ir::DType::kF32, {4}}, ir::StateClass::kInput});
  const ir::ValueId wanted = ops::cast(b, x, ir::DType::kBf16);
  const ir::ValueId unwanted = ops::cast(b, x, ir::DType::kF16);
  ASSERT_TRUE(b.status().ok());
  ASSERT_EQ(dead_code(graph, {.keep = {&wanted, 1}})->removed, 1U);
  const ir::Op& removed = graph.op(graph.value(unwanted).producer);
  const std::string text = ir::print(graph);
  ASSERT_FALSE(removed.inputs.empty());
  empty_removed_ops(graph);
  EXPECT_EQ(ir::print(graph), text);
  EXPECT_TRUE(removed.inputs.empty() && removed.outputs.empty() && removed.attrs.entries().empty());
  EXPECT_NE(removed.def, nullptr) << "who looks at a value's producer finds one";
}

}  // namespace
}  // namespace plimsoll::passes
