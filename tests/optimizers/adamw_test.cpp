// The update that a program makes, against the formula in double precision.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_list.h"
#include "ops/ops.h"
#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {
namespace {

TEST(AdamwTest, TableHoldsPyTorchsFactors) {
  float table[int{kNumGroups} * int{ops::kGroupFields}];
  write_groups(
      {.learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1, .step = 3},
      table);
  EXPECT_FLOAT_EQ(table[ops::kDecayFactor], 0.999F);
  EXPECT_FLOAT_EQ(table[int64_t{ops::kGroupFields} + ops::kDecayFactor], 1.0F);
  EXPECT_FLOAT_EQ(table[ops::kStepSize], static_cast<float>(0.01 / (1 - std::pow(0.9, 3))));
  EXPECT_FLOAT_EQ(table[ops::kSqrtCorrection2], static_cast<float>(std::sqrt(1 - std::pow(0.99, 3))));
}

TEST(AdamwTest, AppendsNormClipAndAnUpdateAParameter) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  b.state({"w", {ir::DType::kF32, {4, 4}}, ir::StateClass::kParameter});
  const ir::ValueId g = ops::fill(b, {4, 4}, 0.5);
  ASSERT_TRUE(append_update(b, {{"w", g, kDecay}}, {}).ok());
  EXPECT_NE(graph.find_state("adamw.m.w"), nullptr);
  EXPECT_NE(graph.find_state("adamw.v.w"), nullptr);
  EXPECT_NE(graph.find_state(kGradNormState), nullptr);
}

TEST(AdamwTest, NamesAnOptimizerThatIsNotThere) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const Status status = append_update(b, {}, {.name = "adamx"});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().what.find("adamx"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::optimizers
