// Where parameters that ranks share are gathered, and for how long they are whole.
#include "passes/training/unshard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/op_def.h"
#include "ir/verifier.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"
#include "ops/ranks.h"
#include "ops/shard.h"
#include "ops/structure.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using testing::ElementsAre;

constexpr int64_t kElements = 20'000;
const Sharding kShared{2, {{"w", "w", {DType::kF32, {ops::kPieceGrain}}, -1}}};

struct Program {
  Program() : b(graph, ops::find_op) {
    graph.name = "micro";
    graph.declare_state({"y", {DType::kF32, {kElements}}, ir::StateClass::kOutput});
    x = b.state({"x", {DType::kF32, {kElements}}, ir::StateClass::kInput});
  }
  ir::ValueId parameter(std::vector<int64_t> shape = {kElements}) {
    return b.state(
        {"w", {DType::kF32, ir::Shape(std::span<const int64_t>(shape))}, ir::StateClass::kParameter});
  }
  std::vector<std::string_view> names_without(std::string_view other, const Sharding& sharding = kShared) {
    EXPECT_TRUE(b.status().ok());
    EXPECT_TRUE(unshard(graph, sharding).ok());
    EXPECT_TRUE(ir::verify(graph).ok());
    std::vector<std::string_view> names;
    for (const ir::OpId id : graph.order())
      if (graph.op(id).def->name != other) names.push_back(graph.op(id).def->name);
    return names;
  }
  ir::Graph graph;
  ir::Builder b;
  ir::ValueId x;
};

TEST(Unshard, AParameterIsGatheredBeforeItsFirstUse) {
  Program p;
  const ir::ValueId w = p.parameter();
  const ir::ValueId early = ops::mul(p.b, p.x, p.x);
  p.b.assign("y", ops::mul(p.b, ops::mul(p.b, early, w), w));
  EXPECT_THAT(p.names_without(""),
              ElementsAre("state", "mul", "state", "unshard", "mul", "mul", "state_assign"))
      << "one gather for uses that are close";
  EXPECT_EQ(p.graph.find_state("w")->type, (ir::TensorType{DType::kF32, {ops::kPieceGrain}}));
}

/// Reads the parameter twice, far apart.
void read_twice(Program& p) {
  const ir::ValueId w = p.parameter();
  ir::ValueId y = ops::mul(p.b, p.x, w);
  for (int i = 0; i < 60; ++i) y = ops::mul(p.b, y, y);
  p.b.assign("y", ops::mul(p.b, y, w));
}

TEST(Unshard, UsesThatAreFarApartHaveAGatherEach) {
  Program p;
  read_twice(p);
  EXPECT_THAT(p.names_without("mul"),
              ElementsAre("state", "state", "unshard", "state", "unshard", "state_assign"));
}

TEST(Unshard, WhatStaysIsGatheredOnce) {
  Program p;
  read_twice(p);
  Sharding staying = kShared;
  staying.states.front().stays = true;
  EXPECT_THAT(p.names_without("mul", staying), ElementsAre("state", "state", "unshard", "state_assign"));
}

const Sharding kLate{.ranks = 2, .late = {"w"}, .gathers_late = true};

TEST(Unshard, WhatIsGatheredLateIsWholeFromItsFirstUseOn) {
  Program p;
  read_twice(p);
  EXPECT_THAT(p.names_without("mul", kLate),
              ElementsAre("state", "state", "own_piece", "all_gather", "state_assign", "state_assign"));
  EXPECT_EQ(p.graph.find_state("w")->type, (ir::TensorType{DType::kF32, {kElements}}));
}

/// Reads the parameter, and updates this rank's piece of it; as written, both read it anew.
void read_and_update(Program& p) {
  p.b.assign("y", ops::mul(p.b, p.x, p.parameter()));
  const ir::ValueId w = p.b.read("w");
  const ir::ValueId piece = ops::own_piece(p.b, w, 2, ops::kPieceGrain);
  p.b.assign("w", ops::all_gather(p.b, ops::mul(p.b, piece, piece), w, 2));
}

TEST(Unshard, AnUpdateLeavesEachRankItsPiece) {
  Program step, update;
  read_and_update(step);
  EXPECT_THAT(step.names_without("mul", kLate),
              ElementsAre("state", "state", "own_piece", "all_gather", "state_assign", "own_piece",
                          "put_piece", "state_assign"));
  read_and_update(update);
  EXPECT_THAT(
      update.names_without("mul", {.ranks = 2, .late = {"w"}}),
      ElementsAre("state", "state", "state_assign", "state", "own_piece", "put_piece", "state_assign"));
}

TEST(Unshard, ViewsAreMadeOfEachGather) {
  Program p;
  const ir::ValueId w = ops::reshape(p.b, p.parameter({2, kElements / 2}), {kElements});
  p.b.assign("y", ops::mul(p.b, p.x, w));
  EXPECT_THAT(p.names_without(""),
              ElementsAre("state", "state", "unshard", "reshape", "mul", "state_assign"));
}

TEST(Unshard, WhatAnOwnerHasIsReadWhereItIsKept) {
  Program p;
  p.b.assign("y", ops::mul(p.b, p.x, p.parameter()));
  ASSERT_TRUE(unshard(p.graph, {2, {{"w", "first", {DType::kF32, {kElements}}, 1}}}).ok());
  EXPECT_TRUE(ir::verify(p.graph).ok());
  EXPECT_EQ(p.graph.find_state("w"), nullptr);
  EXPECT_NE(p.graph.find_state("first"), nullptr);
}

TEST(Unshard, APartOfAnotherTensorIsAnError) {
  Program p;
  p.b.assign("y", ops::mul(p.b, p.x, p.parameter()));
  const Status status = unshard(p.graph, {2, {{"w", "w", {DType::kF32, {7}}, -1}}});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().what.find("kept is not of the tensor"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::passes
