// The table of AdamW; torch_test.cpp has the steps.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/update_rules.h"
#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {
namespace {

TEST(AdamwTest, TableHoldsPyTorchsFactors) {
  float table[2 * ops::kAdamwFields];
  write_groups(
      {.learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1, .step = 3},
      {}, table);
  EXPECT_FLOAT_EQ(table[ops::kAdamwDecay], 0.999F);
  EXPECT_FLOAT_EQ(table[ops::kAdamwFields + ops::kAdamwDecay], 1.0F);
  EXPECT_FLOAT_EQ(table[ops::kAdamwStepSize], static_cast<float>(0.01 / (1 - std::pow(0.9, 3))));
  EXPECT_FLOAT_EQ(table[ops::kAdamwSqrtCorrection2], static_cast<float>(std::sqrt(1 - std::pow(0.99, 3))));
}

/// Two rows a group; what a group leaves out is the run's.
TEST(AdamwTest, GroupsHaveRowsOfTheirOwn) {
  float table[6 * ops::kAdamwFields];
  const StepHyper hyper{.learning_rate = 0.01, .beta1 = 0.9, .weight_decay = 0.1, .schedule_factor = 0.5};
  write_groups(hyper,
               std::vector<GroupHyper>{{.learning_rate = 0.2}, {.weight_decay = 0.3, .betas = {{0.5, 0.75}}}},
               table);
  const auto at = [&](int64_t group, bool decays, int64_t field) {
    return table[row_of(group, decays) * ops::kAdamwFields + field];
  };
  EXPECT_FLOAT_EQ(at(0, true, ops::kAdamwDecay), 1 - 0.01F * 0.1F);
  EXPECT_EQ(at(0, false, ops::kAdamwDecay), 1.0F);
  EXPECT_FLOAT_EQ(at(1, true, ops::kAdamwDecay), 1 - 0.1F * 0.1F) << "its peak by the schedule's factor";
  EXPECT_EQ(at(1, false, ops::kAdamwDecay), 1.0F) << "the run's scope";
  EXPECT_FLOAT_EQ(at(1, true, ops::kAdamwStepSize), static_cast<float>(0.1 / (1 - 0.9)));
  EXPECT_EQ(at(1, true, ops::kAdamwBeta1), 0.9F);
  EXPECT_FLOAT_EQ(at(2, true, ops::kAdamwDecay), 1 - 0.01F * 0.3F);
  EXPECT_FLOAT_EQ(at(2, false, ops::kAdamwDecay), 1 - 0.01F * 0.3F) << "its own decay, whatever the scope";
  EXPECT_EQ(at(2, true, ops::kAdamwBeta1), 0.5F);
  EXPECT_EQ(at(2, true, ops::kAdamwBeta2), 0.75F);
}

TEST(AdamwTest, AdamHasNoDecay) {
  float table[2 * ops::kAdamwFields];
  write_groups({.learning_rate = 0.01, .weight_decay = 0.1, .optimizer = "adam"}, {}, table);
  EXPECT_EQ(table[ops::kAdamwDecay], 1.0F);
}

}  // namespace
}  // namespace plimsoll::optimizers
