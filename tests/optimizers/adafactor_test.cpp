// Adafactor's table and its states; torch_test.cpp has the steps.
#include <gtest/gtest.h>

#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/tensor_rules.h"
#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {
namespace {

int64_t state_bytes(const Update& like, const ir::TensorType& type, bool moment) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  b.state({"w", type, ir::StateClass::kParameter});
  Update update = like;
  update.parameter = "w";
  update.gradient = b.state({"g", type, ir::StateClass::kInput});
  EXPECT_TRUE(append_update(b, {update}, {"adafactor", {}, moment}).ok());
  int64_t bytes = 0;
  for (const auto& state : graph.states())
    if (state.state_class == ir::StateClass::kOptimizerState) bytes += state.type.bytes().count;
  return bytes;
}

/// q, k and v side by side are three matrices: a row a row, a column each.
TEST(AdafactorTest, ItsStatesAreAsLargeAsTheTheorySays) {
  const ir::TensorType matrix{ir::DType::kF32, {96, 40}}, vector{ir::DType::kF32, {96}};
  EXPECT_EQ(state_bytes({}, matrix, false), 4 * (96 + 40));
  EXPECT_EQ(state_bytes({.parameter = "", .gradient = {}, .parts = {64, 16, 16}}, matrix, false),
            4 * (96 + 3 * 40));
  EXPECT_EQ(state_bytes({.parameter = "", .gradient = {}, .kind = ir::ParameterKind::kVector}, vector, false),
            4 * 96);
  EXPECT_EQ(state_bytes({}, matrix, true), 4 * (96 + 40 + 96 * 40));
}

TEST(AdafactorTest, TheFirstStepsSecondMomentIsItsOwn) {
  float table[2 * ops::kAdafactorFields];
  StepHyper hyper{.learning_rate = 0.5, .weight_decay = 0.25, .optimizer = "adafactor"};
  write_groups(hyper, {}, table);
  EXPECT_EQ(table[ops::kAdafactorBeta2], 0.0F);
  EXPECT_EQ(table[ops::kAdafactorRate], 0.5F);
  EXPECT_EQ(table[ops::kAdafactorFields + ops::kAdafactorDecay], 0.0F);
  hyper.step = 400;
  hyper.adafactor.relative_step = true;
  write_groups(hyper, {}, table);
  EXPECT_EQ(table[ops::kAdafactorRate], 0.01F);
}

}  // namespace
}  // namespace plimsoll::optimizers
