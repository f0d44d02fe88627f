// What the update keeps on each of several ranks.
#include "optimizers/append_rules.h"

#include <gtest/gtest.h>

#include "ir/verifier.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/ranks.h"

namespace plimsoll::optimizers {
namespace {

constexpr ir::DType kMaster = ir::DType::kF32;

/// An update of bf16 matrices of a block by name and shape, with masters.
ir::Graph updated(const OptimizerOptions& options,
                  const std::vector<std::pair<std::string, ir::Shape>>& all) {
  ir::Graph graph;
  graph.name = "update";
  ir::Builder b(graph, ops::find_op);
  std::vector<Update> updates;
  for (const auto& [name, shape] : all) {
    const auto dims = shape.dims();
    const ir::TensorType type{ir::DType::kBf16, shape};
    const bool is_small = shape.num_elements() <= ops::kPieceGrain;
    if (!options.shares_parameters || is_small) b.state({name, type, ir::StateClass::kParameter});
    updates.push_back({.parameter = name,
                       .gradient = ops::fill(b, {dims.begin(), dims.end()}, 0.5),
                       .is_hidden = true,
                       .type = type});
  }
  const ir::ValueId random = b.state({"random", {ir::DType::kI32, {4}}, ir::StateClass::kScalars});
  EXPECT_TRUE(append_update(b, updates, options, random).ok());
  EXPECT_TRUE(ir::verify(graph).ok());
  return graph;
}

int count(const ir::Graph& graph, std::string_view op) {
  int found = 0;
  for (const ir::OpId id : graph.order()) found += graph.op(id).def->name == op ? 1 : 0;
  return found;
}

TEST(AppendRules, ARankUpdatesItsPiece) {
  const ir::Graph graph =
      updated({.state = {.masters = true}, .ranks = 2}, {{"w", {300, 100}}, {"v", {100}}});
  EXPECT_EQ(graph.find_state("master.w")->type, (ir::TensorType{kMaster, {16'384}}));
  EXPECT_EQ(graph.find_state("adamw.v.w")->type, (ir::TensorType{kMaster, {16'384}}));
  EXPECT_EQ(graph.find_state("adamw.v.v")->type, (ir::TensorType{kMaster, {100}}));
  EXPECT_EQ(count(graph, "all_gather"), 1);
}

TEST(AppendRules, AnOwnerUpdatesItsMatrix) {
  const ir::Shape large{300, 100}, other{200, 100};
  const ir::Graph graph = updated({.name = "muon", .state = {.masters = true}, .ranks = 2},
                                  {{"a", large}, {"b", large}, {"other", other}, {"c", large}, {"d", large}});
  EXPECT_NE(graph.find_state("muon.momentum.a"), nullptr);
  EXPECT_EQ(graph.find_state("muon.momentum.b"), nullptr) << "on the rank of b it is where a's is";
  EXPECT_EQ(graph.find_state("master.b"), nullptr);
  EXPECT_NE(graph.find_state("muon.momentum.other"), nullptr) << "the one of its shape";
  EXPECT_EQ(count(graph, "muon"), 3);
  EXPECT_EQ(count(graph, "from_owner"), 4);
}

/// Then nothing is gathered behind the update.
TEST(AppendRules, WhatIsUpdatedIsAllThatARankKeeps) {
  for (const bool masters : {true, false}) {
    const ir::Graph pieces = updated({.state = {.masters = masters}, .ranks = 2, .shares_parameters = true},
                                     {{"w", {300, 100}}, {"v", {100}}});
    EXPECT_EQ(pieces.find_state("w")->type, (ir::TensorType{ir::DType::kBf16, {16'384}}));
    EXPECT_EQ(count(pieces, "all_gather"), 0);
    EXPECT_EQ(count(pieces, "state_assign"),
              count(updated({.state = {.masters = masters}, .ranks = 2}, {{"w", {300, 100}}, {"v", {100}}}),
                    "state_assign"));
  }
  const ir::Shape large{300, 100};
  const ir::Graph owned =
      updated({.name = "muon", .ranks = 2, .shares_parameters = true}, {{"a", large}, {"b", large}});
  EXPECT_EQ(owned.find_state("b"), nullptr) << "on the rank of b it is where a's is";
  EXPECT_EQ(count(owned, "from_owner"), 0);
}

/// Each rank draws for the elements of its piece, and by its matrix's key.
TEST(AppendRules, WhatIsSharedDrawsOfItsOwn) {
  const StateDtypes brief{.moments = ir::DType::kBf16, .stochastic = true};
  EXPECT_EQ(count(updated({.state = brief, .ranks = 2}, {{"w", {300, 100}}}), "own_draws"), 1);
  EXPECT_EQ(count(updated({.state = brief, .ranks = 2}, {{"w", {100}}}), "own_draws"), 0);
  EXPECT_EQ(count(updated({.state = brief}, {{"w", {300, 100}}}), "own_draws"), 0);
}

}  // namespace
}  // namespace plimsoll::optimizers
