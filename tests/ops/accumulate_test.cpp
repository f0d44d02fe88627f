// Accumulators of bf16: what is exact stays so, what is not goes to a neighbour, operands that do not fit.
#include "ops/accumulate.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

const Attrs kKey{{"key", int64_t{7}}};

RefTensor held(const Shape& shape, std::vector<double> data) {
  return reference::tensor({DType::kBf16, shape}, std::move(data));
}

TEST(Accumulate, WhatBf16HoldsIsExact) {
  const RefTensor random = ints({4}, {1, 2, 3, 4});
  EXPECT_EQ(evaluate("accumulate", {values({3}, {1, -2.5, 0.125}), random}, kKey)[0].data,
            (std::vector<double>{1, -2.5, 0.125}));
  EXPECT_EQ(evaluate("accumulate", {values({2}, {1, -2.5}), random, held({2}, {2, 0.5})}, kKey)[0].data,
            (std::vector<double>{3, -2}));
}

/// 1 + 2^-9 lies a quarter of the way to bf16's next number.
TEST(Accumulate, WhatItDoesNotHoldGoesUpAsOftenAsItIsNear) {
  constexpr int64_t kCount = 4000;
  const RefTensor g = values({kCount}, std::vector<double>(kCount, 0x1p-9)),
                  one = held({kCount}, std::vector<double>(kCount, 1));
  double up = 0;
  const auto sums = evaluate("accumulate", {g, ints({4}, {1, 2, 3, 4}), one}, kKey);
  for (const double v : sums[0].data) {
    EXPECT_TRUE(v == 1 || v == 1 + 0x1p-7) << v;
    up += v > 1 ? 1 : 0;
  }
  EXPECT_NEAR(up / kCount, 0.25, 0.03);
}

TEST(Accumulate, AnotherMicroBatchDrawsOthers) {
  const RefTensor g = values({64}, std::vector<double>(64, 1 + 0x1p-8));
  EXPECT_NE(evaluate("accumulate", {g, ints({4}, {1, 2, 3, 4})}, kKey)[0].data,
            evaluate("accumulate", {g, ints({4}, {1, 2, 3, 5})}, kKey)[0].data);
}

TEST(Accumulate, SaysWhatDoesNotFit) {
  EXPECT_EQ(operand_error({"accumulate", {f32({2, 3}), i32({3})}, kKey, ""}),
            "accumulate: random must be [4], is [3]");
  EXPECT_EQ(operand_error({"accumulate", {f32({2, 3}), i32({4}), f32({2, 3})}, kKey, ""}),
            "accumulate: acc must be bf16, is f32[2,3]");
}

}  // namespace
}  // namespace plimsoll::ops_testing
