// Camembert: the defaults of its class, which are not RoBERTa's.
#include <gtest/gtest.h>

#include "forward.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

TEST(Camembert, WhatItsConfigLeavesOutIsTheClasses) {
  const auto model = model_of(R"({"model_type": "camembert"})");
  EXPECT_EQ(model->vocab_size(), 30522);
  EXPECT_EQ(model->num_token_types(), 2);
  EXPECT_EQ(model->max_positions(), 510);
  EXPECT_EQ(camembert_family().class_name, "Camembert");
}

}  // namespace
}  // namespace plimsoll::models
