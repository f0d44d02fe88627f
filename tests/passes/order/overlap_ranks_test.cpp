// Where exchanges and gathers stand in the order, and that the order is sound.
#include "passes/order/overlap_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/network_queue.h"
#include "ops/ops.h"
#include "ops/ranks.h"
#include "ops/shard.h"
#include "passes/order/check_hazards.h"
#include "passes/planned.h"
#include "passes/training/accumulate_pieces.h"
#include "passes/training/sum_over_ranks.h"

namespace plimsoll::passes {
namespace {

using ir::ValueId;
using testing::ElementsAre;

constexpr int64_t kRanks = 3;
const ir::TensorType kWhole{ir::DType::kF32, {kRanks * ops::kPieceGrain}};

std::vector<std::string_view> names(const ir::Graph& graph) {
  std::vector<std::string_view> names;
  for (const ir::OpId id : graph.order()) names.push_back(graph.op(id).def->name);
  return names;
}

/// What ranks exchange is on the network's queue, and nothing else.
void expect_queues(const ir::Graph& graph) {
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    EXPECT_EQ(op.queue == ir::kNetworkQueue, op.def->traffic != nullptr) << op.def->name;
  }
}

void expect_sound(ir::Graph graph) {
  expect_queues(graph);
  const auto p = fixtures::plan_program(std::move(graph));
  ASSERT_TRUE(p) << p.error().message();
  const Status sound = check_hazards(p->graph, p->binding, p->plan, p->order);
  EXPECT_TRUE(sound) << sound.error().message();
}

/// A gradient of each of three blocks, from the last one on, and their sums over ranks behind them all.
ir::Graph gradients() {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ValueId x = b.state({"x", kWhole, ir::StateClass::kInput});
  std::vector<ValueId> all;
  for (int32_t block = 2; block >= 0; --block) {
    const auto scope = b.block(block, "layers");
    all.push_back(ops::silu(b, x));
  }
  const std::vector<ValueId> sums = sum_over_ranks(b, all, kRanks);
  graph.declare_state({"y", kWhole, ir::StateClass::kOutput});
  b.assign("y", ops::add(b, ops::add(b, sums[0], sums[1]), sums[2]));
  EXPECT_TRUE(b.status());
  return graph;
}

TEST(OverlapRanks, AGradientTravelsWhileTheNextIsComputed) {
  ir::Graph graph = gradients();
  overlap_ranks(graph, /*early=*/true);
  EXPECT_THAT(names(graph), ElementsAre("state", "silu", "exchange", "silu", "sum_ranks", "all_gather",
                                        "exchange", "silu", "sum_ranks", "all_gather", "exchange", "add",
                                        "sum_ranks", "all_gather", "add", "state_assign"));
  expect_sound(std::move(graph));
}

TEST(OverlapRanks, WhereMemoryIsShortTheOrderStays) {
  ir::Graph graph = gradients();
  const std::vector<ir::OpId> order = graph.order();
  overlap_ranks(graph, /*early=*/false);
  EXPECT_TRUE(graph.order() == order);
  expect_sound(std::move(graph));
}

/// Each rank's pieces: the gradient lives until the others have read it.
TEST(OverlapRanks, WhatIsSentLivesUntilItHasArrived) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ValueId x = b.state({"x", kWhole, ir::StateClass::kInput});
  std::vector<PieceAccumulation> pieces;
  for (int32_t block = 2; block >= 0; --block) {
    const auto scope = b.block(block, "layers");
    const std::string name = "g" + std::to_string(block);
    graph.declare_state({name, {ir::DType::kF32, {ops::kPieceGrain}}, ir::StateClass::kGradient});
    pieces.push_back({ops::silu(b, x), name, /*first=*/block > 0});
  }
  ASSERT_TRUE(b.status());
  ASSERT_TRUE(accumulate_pieces(graph, pieces, kRanks));
  overlap_ranks(graph, /*early=*/true);
  EXPECT_THAT(names(graph), ElementsAre("state", "silu", "exchange", "silu", "sum_ranks", "state_assign",
                                        "exchange", "silu", "sum_ranks", "state_assign", "exchange", "state",
                                        "sum_ranks", "add", "state_assign"));
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (!ops::is_sum_of_ranks(*op.def)) continue;
    EXPECT_EQ(graph.op(graph.value(op.inputs[1]).producer).def->name, "silu");
  }
  expect_sound(std::move(graph));
}

TEST(OverlapRanks, WeightsComeWhileTheBlockBeforeComputes) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  ValueId y = b.state({"x", kWhole, ir::StateClass::kInput});
  for (int32_t block = 0; block < 3; ++block) {
    const auto scope = b.block(block, "layers");
    const ValueId kept = b.state(
        {"w" + std::to_string(block), {ir::DType::kF32, {ops::kPieceGrain}}, ir::StateClass::kParameter});
    y = ops::add(b, y, ops::unshard(b, kept, kWhole, kRanks, -1));
  }
  graph.declare_state({"y", kWhole, ir::StateClass::kOutput});
  b.assign("y", y);
  ASSERT_TRUE(b.status());
  overlap_ranks(graph, /*early=*/true);
  EXPECT_THAT(names(graph), ElementsAre("state", "unshard", "state", "state", "unshard", "add", "state",
                                        "unshard", "add", "add", "state_assign"));
  expect_sound(std::move(graph));
}

TEST(OverlapRanks, SoDoPiecesOfWeightsThatAreGatheredLate) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  ValueId y = b.state({"x", kWhole, ir::StateClass::kInput});
  for (int32_t block = 0; block < 3; ++block) {
    const auto scope = b.block(block, "layers");
    const std::string name = "w" + std::to_string(block);
    const ValueId w = b.state({name, kWhole, ir::StateClass::kParameter});
    const ValueId whole = ops::all_gather(b, ops::own_piece(b, w, kRanks, ops::kPieceGrain), w, kRanks);
    b.assign(name, whole);
    y = ops::add(b, y, whole);
  }
  graph.declare_state({"y", kWhole, ir::StateClass::kOutput});
  b.assign("y", y);
  ASSERT_TRUE(b.status());
  overlap_ranks(graph, /*early=*/true);
  EXPECT_THAT(names(graph),
              ElementsAre("state", "own_piece", "all_gather", "state", "state", "own_piece", "all_gather",
                          "state_assign", "add", "state", "own_piece", "all_gather", "state_assign", "add",
                          "state_assign", "add", "state_assign"));
  expect_sound(std::move(graph));
}

TEST(OverlapRanks, OneRankHasNothingToExchange) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  graph.declare_state({"y", kWhole, ir::StateClass::kOutput});
  b.assign("y", ops::silu(b, b.state({"x", kWhole, ir::StateClass::kInput})));
  const std::vector<ir::OpId> order = graph.order();
  overlap_ranks(graph, /*early=*/true);
  EXPECT_TRUE(graph.order() == order);
  expect_queues(graph);
}

}  // namespace
}  // namespace plimsoll::passes
