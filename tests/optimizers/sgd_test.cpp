// The table of SGD, and that momentum alone brings a state; torch_test.cpp has the steps.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/update_rules.h"
#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {
namespace {

TEST(SgdTest, TheFirstStepIsNotDamped) {
  float table[2 * ops::kSgdFields];
  StepHyper hyper{
      .learning_rate = 0.5, .weight_decay = 0.25, .momentum = 0.9, .dampening = 0.75, .optimizer = "sgd"};
  write_groups(hyper, {}, table);
  EXPECT_EQ(table[ops::kSgdFresh], 1.0F);
  hyper.step = 2;
  write_groups(hyper, {}, table);
  EXPECT_EQ(table[ops::kSgdFresh], 0.25F);
  EXPECT_EQ(table[ops::kSgdRate], 0.5F);
  EXPECT_EQ(table[ops::kSgdWeightDecay], 0.25F);
  EXPECT_EQ(table[ops::kSgdFields + ops::kSgdWeightDecay], 0.0F);
  EXPECT_EQ(table[ops::kSgdFields + ops::kSgdMomentum], 0.9F);
  EXPECT_EQ(table[ops::kSgdNesterov], 0.0F);
}

TEST(SgdTest, OnlyMomentumHasAState) {
  for (const bool momentum : {false, true}) {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    b.state({"w", {ir::DType::kF32, {4, 4}}, ir::StateClass::kParameter});
    ASSERT_TRUE(append_update(b, {{"w", ops::fill(b, {4, 4}, 0.5)}}, {"sgd", {}, momentum}).ok());
    const auto& states = graph.states();
    EXPECT_EQ(std::count_if(states.begin(), states.end(),
                            [](const auto& s) { return s.state_class == ir::StateClass::kOptimizerState; }),
              momentum ? 1 : 0);
    EXPECT_EQ(graph.find_state("sgd_momentum.buffer.w") != nullptr, momentum);
  }
}

}  // namespace
}  // namespace plimsoll::optimizers
