// Which ops sum a gradient over ranks, and where the sum lies.
#include "passes/training/sum_over_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/op_def.h"
#include "ir/verifier.h"
#include "ops/op_list.h"
#include "ops/ranks.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using testing::ElementsAre;

ir::StateDecl gradient(const std::string& name, int64_t elements) {
  return {name, {DType::kF32, {elements}}, ir::StateClass::kGradient};
}

std::vector<std::string_view> op_names(const ir::Graph& graph) {
  std::vector<std::string_view> names;
  for (const ir::OpId id : graph.order()) names.push_back(graph.op(id).def->name);
  return names;
}

TEST(SumOverRanks, CutsWhatHasAPieceForEachAndGathersTheRest) {
  ir::Graph graph;
  graph.name = "update";
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId large = b.state(gradient("grad.large", 3 * ops::kPieceGrain));
  const ir::ValueId small = b.state(gradient("grad.small", 3 * ops::kPieceGrain - 1));
  const auto sums = sum_over_ranks(b, {large, small}, 3);
  ASSERT_TRUE(b.status());
  EXPECT_THAT(op_names(graph), ElementsAre("state", "state", "exchange", "sum_ranks", "all_gather",
                                           "state_assign", "gather_ranks", "sum_ranks", "state_assign"));
  EXPECT_EQ(graph.type(sums[0]), graph.type(large));
  EXPECT_EQ(graph.type(sums[1]), graph.type(small));
  EXPECT_TRUE(ir::verify(graph));
}

TEST(SumOverRanks, APieceOfASumStaysWhereTheUpdateIsShared) {
  ir::Graph graph;
  graph.name = "update";
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId shared = b.state(gradient("grad.shared", 2 * ops::kPieceGrain));
  const ir::ValueId whole = b.state(gradient("grad.whole", 3));
  const auto sums = sum_over_ranks(b, {shared, whole}, 3, {true, false});
  ASSERT_TRUE(b.status());
  EXPECT_THAT(op_names(graph), ElementsAre("state", "state", "exchange", "sum_ranks", "put_piece",
                                           "state_assign", "gather_ranks", "sum_ranks", "state_assign"));
  EXPECT_EQ(graph.type(sums[0]), graph.type(shared));
  EXPECT_TRUE(ir::verify(graph));
}

TEST(SumOverRanks, AStateHoldsTheMeanFromThereOn) {
  ir::Graph graph;
  graph.name = "update";
  graph.declare_state({"running_mean", {DType::kF32, {5}}, ir::StateClass::kBuffer});
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId mean = average_state_over_ranks(b, "running_mean", 3);
  ASSERT_TRUE(b.status());
  EXPECT_THAT(op_names(graph),
              ElementsAre("state", "gather_ranks", "sum_ranks", "pointwise", "state_assign"));
  EXPECT_EQ(graph.op(graph.value(mean).producer).attrs.str("expr"), "div(x0,3)");
  EXPECT_TRUE(ir::verify(graph));
}

TEST(SumOverRanks, AStateHoldsTheSumFromThereOn) {
  ir::Graph graph;
  graph.name = "update";
  graph.declare_state({"step.loss", {DType::kF32, {1}}, ir::StateClass::kOutput});
  ir::Builder b(graph, ops::find_op);
  sum_state_over_ranks(b, "step.loss", 9);
  ASSERT_TRUE(b.status());
  EXPECT_THAT(op_names(graph), ElementsAre("state", "gather_ranks", "sum_ranks", "state_assign"));
  EXPECT_TRUE(ir::verify(graph));
}

}  // namespace
}  // namespace plimsoll::passes
