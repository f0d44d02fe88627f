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
  std::vector<std::string_view> names_without(std::string_view other) {
    EXPECT_TRUE(b.status().ok());
    EXPECT_TRUE(unshard(graph, kShared).ok());
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

TEST(Unshard, UsesThatAreFarApartHaveAGatherEach) {
  Program p;
  const ir::ValueId w = p.parameter();
  ir::ValueId y = ops::mul(p.b, p.x, w);
  for (int i = 0; i < 60; ++i) y = ops::mul(p.b, y, y);
  p.b.assign("y", ops::mul(p.b, y, w));
  EXPECT_THAT(p.names_without("mul"),
              ElementsAre("state", "state", "unshard", "state", "unshard", "state_assign"));
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
