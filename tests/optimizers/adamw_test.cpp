// The table of AdamW; torch_test.cpp has the steps.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/update_rules.h"
#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {
namespace {

constexpr int64_t kFields = ops::kAdamwFields;

TEST(AdamwTest, TableHoldsPyTorchsFactors) {
  float table[int{kNumGroups} * kFields];
  write_groups(
      {.learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1, .step = 3},
      table);
  EXPECT_FLOAT_EQ(table[ops::kAdamwDecay], 0.999F);
  EXPECT_FLOAT_EQ(table[kFields + ops::kAdamwDecay], 1.0F);
  EXPECT_FLOAT_EQ(table[ops::kAdamwStepSize], static_cast<float>(0.01 / (1 - std::pow(0.9, 3))));
  EXPECT_FLOAT_EQ(table[ops::kAdamwSqrtCorrection2], static_cast<float>(std::sqrt(1 - std::pow(0.99, 3))));
}

TEST(AdamwTest, AdamHasNoDecay) {
  float table[int{kNumGroups} * kFields];
  write_groups({.learning_rate = 0.01, .weight_decay = 0.1, .optimizer = "adam"}, table);
  EXPECT_EQ(table[ops::kAdamwDecay], 1.0F);
}

}  // namespace
}  // namespace plimsoll::optimizers
