// Where the ranks' sum of a gradient goes, and that it stands where the gradient is complete.
#include "passes/training/accumulate_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/op_def.h"
#include "ir/verifier.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"
#include "ops/ranks.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using testing::ElementsAre;

constexpr int64_t kElements = 3 * ops::kPieceGrain + 1, kPiece = 2 * ops::kPieceGrain;

/// A gradient, what is done behind it, and an accumulator of `elements`.
ir::Graph micro_batch(int64_t elements, ir::ValueId& gradient) {
  ir::Graph graph;
  graph.name = "micro";
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId x = b.state({"x", {DType::kF32, {kElements}}, ir::StateClass::kInput});
  graph.declare_state({"y", {DType::kF32, {kElements}}, ir::StateClass::kOutput});
  graph.declare_state({"grad.w", {DType::kF32, {elements}}, ir::StateClass::kGradient});
  gradient = ops::mul(b, x, x);
  b.assign("y", ops::mul(b, x, x));
  EXPECT_TRUE(b.status().ok());
  return graph;
}

std::vector<std::string_view> names_of(const ir::Graph& graph) {
  std::vector<std::string_view> names;
  for (const ir::OpId id : graph.order()) names.push_back(graph.op(id).def->name);
  return names;
}

TEST(AccumulatePieces, SumsOverRanksWhereAGradientIsComplete) {
  ir::ValueId gradient;
  ir::Graph first = micro_batch(kPiece, gradient);
  ASSERT_TRUE(accumulate_pieces(first, std::vector<PieceAccumulation>{{gradient, "grad.w", true}}, 2).ok());
  EXPECT_THAT(names_of(first),
              ElementsAre("state", "mul", "exchange", "sum_ranks", "state_assign", "mul", "state_assign"));
  EXPECT_TRUE(ir::verify(first).ok());
  ir::Graph next = micro_batch(kPiece, gradient);
  ASSERT_TRUE(accumulate_pieces(next, std::vector<PieceAccumulation>{{gradient, "grad.w", false}}, 2).ok());
  EXPECT_THAT(names_of(next), ElementsAre("state", "mul", "exchange", "sum_ranks", "state", "add",
                                          "state_assign", "mul", "state_assign"));
  EXPECT_TRUE(ir::verify(next).ok());
}

TEST(AccumulatePieces, AnAccumulatorIsAPieceOfItsGradient) {
  ir::ValueId gradient;
  ir::Graph graph = micro_batch(kElements, gradient);
  const Status status =
      accumulate_pieces(graph, std::vector<PieceAccumulation>{{gradient, "grad.w", true}}, 2);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().what.find("'grad.w' is not declared as f32[32768]"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::passes
