// Which operands a dump gets, under which names.
#include "passes/training/keep_operands.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/training/autodiff.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::StateClass;
using ir::ValueId;

/// Two layers that share their input, and a head outside of blocks.
std::set<std::string> kept_of(bool has_backward) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const auto state = [&](const char* name, ir::Shape shape, StateClass c) {
    return b.state({name, {DType::kF32, shape}, c});
  };
  const ValueId x = state("x", {2, 4, 8}, StateClass::kInput);
  const ValueId a = state("layers.0.a.weight", {8, 8}, StateClass::kParameter);
  const ValueId c = state("layers.0.c.weight", {8, 8}, StateClass::kParameter);
  const ValueId head = state("head.weight", {8, 8}, StateClass::kParameter);
  ValueId y;
  {
    const auto block = b.block(0, "layers.0");
    const ValueId in = ops::silu(b, x);
    y = ops::add(b, ops::linear(b, in, a, {}), ops::linear(b, in, c, {}));
  }
  y = ops::linear(b, y, head, {});
  const ir::OpId last = graph.order().back();
  const ValueId dy = state("dy", {2, 4, 8}, StateClass::kInput);
  const std::vector<ValueId> wrt = {x, a, c, head};
  EXPECT_TRUE(autodiff(graph, {.loss = y, .wrt = wrt, .seed = dy}).ok());
  EXPECT_TRUE(keep_operands(graph, has_backward ? last : ir::OpId{}).ok());
  std::set<std::string> names;
  for (const ir::StateDecl& declared : graph.states())
    if (declared.state_class == StateClass::kOutput) names.insert(declared.name);
  return names;
}

TEST(KeepOperands, OfEachLinearLayerOfABlock) {
  const std::set<std::string> names = {"t.layers.0.a.x", "t.layers.0.a.w", "t.layers.0.a.dy",
                                       "t.layers.0.c.x", "t.layers.0.c.w", "t.layers.0.c.dy"};
  EXPECT_EQ(kept_of(true), names);
  EXPECT_TRUE(kept_of(false).empty()) << "a program without backward has no gradients";
}

}  // namespace
}  // namespace plimsoll::passes
