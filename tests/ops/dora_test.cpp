// Weights by direction and magnitude: derivative, known values, operands that do not fit.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

Attrs rows_at(int64_t row, int64_t rank_row, double scale, bool transposed = false) {
  return {{"row", row}, {"rank_row", rank_row}, {"scale", scale}, {"transposed", transposed}};
}

TEST(Dora, NormsAreThoseOfTheAdaptedRows) {
  const Tensors in = {values({2, 2}, {9, 9, 1, 2}), values({2, 2}, {7, 7, 1, 1}), values({1, 1}, {2})};
  // Row 1 of the weight with row 1 of A: (1, 2) + 1 * 2 * (1, 1) = (3, 4).
  EXPECT_EQ(evaluate("dora_norm", in, rows_at(1, 1, 1))[0].data, std::vector<double>{5});
  const Tensors across = {values({2, 2}, {9, 1, 9, 2}), in[1], in[2]};
  EXPECT_EQ(evaluate("dora_norm", across, rows_at(1, 1, 1, true))[0].data, std::vector<double>{5});
}

TEST(Dora, ScaleIsByMagnitudeOverNorm) {
  EXPECT_EQ(
      evaluate("dora_scale", {values({2, 2}, {1, 2, 3, 4}), values({2}, {2, 6}), values({2}, {1, 3})})[0]
          .data,
      (std::vector<double>{2, 4, 6, 8}));
}

TEST(Dora, DerivativeMatchesFiniteDifferences) {
  const DerivativeCase row{.name = "dora_scale",
                           .op = "dora_scale",
                           .inputs = {normal({2, 3, 4}), normal({4}, 1), positive({4}, 0.5, 2)},
                           .constants = {2}};
  EXPECT_LT(derivative_error(row), kDerivativeTolerance);
}

TEST(Dora, SaysWhatDoesNotFit) {
  EXPECT_EQ(operand_error({"dora_norm", {f32({2, 3}), f32({1, 4}), f32({2, 1})}, rows_at(0, 0, 1), ""}),
            "dora_norm: inner dimensions differ: weight [2,3], a [1,4]");
  EXPECT_EQ(operand_error({"dora_norm", {f32({2, 3}), f32({1, 3}), f32({2, 1})}, rows_at(1, 0, 1), ""}),
            "dora_norm: rows beyond the weight: weight [2,3], b [2,1]");
  EXPECT_EQ(operand_error({"dora_norm", {f32({2, 3}), f32({1, 3}), f32({2, 1})}, rows_at(0, 1, 1), ""}),
            "dora_norm: ranks beyond a: a [1,3], b [2,1]");
  EXPECT_EQ(operand_error({"dora_scale", {f32({2, 3}), f32({2}), f32({3})}, {}, ""}),
            "dora_scale: magnitude must be [3], is [2]");
}

}  // namespace
}  // namespace plimsoll::ops_testing
