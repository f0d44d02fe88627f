// Products of two activations: derivatives, known values, operands that do not fit.
#include "ops/batched_matmul.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

Attrs transposed(bool a, bool b) { return {{"transpose_a", a}, {"transpose_b", b}}; }

TEST(BatchedMatmul, DerivativesMatchFiniteDifferences) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const RefTensor a = normal(ta ? Shape{2, 4, 3} : Shape{2, 3, 4}, 1);
      const RefTensor b = normal(tb ? Shape{2, 5, 4} : Shape{2, 4, 5}, 2);
      const DerivativeCase row{"", "batched_matmul", {a, b}, transposed(ta, tb)};
      EXPECT_LT(derivative_error(row), kDerivativeTolerance) << ta << tb;
    }
  const DerivativeCase stretched{"", "batched_matmul", {normal({3, 1, 2, 3}), normal({2, 3, 2}, 1)}, {}};
  EXPECT_LT(derivative_error(stretched), kDerivativeTolerance);
}

TEST(BatchedMatmul, GivesKnownValues) {
  const auto y = evaluate("batched_matmul", {values({1, 2}, {1, 2}), values({2, 2, 1}, {1, 2, 3, 4})})[0];
  EXPECT_EQ(y.type.shape, (Shape{2, 1, 1}));
  EXPECT_EQ(y.data, (std::vector<double>{5, 11}));
}

TEST(BatchedMatmul, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"batched_matmul",
       {f32({2, 3}), f32({2, 3})},
       {},
       "batched_matmul: inner dimensions differ: a [2,3], b [2,3]"},
      {"batched_matmul",
       {f32({3}), f32({3, 2})},
       {},
       "batched_matmul: both want two axes or more: a [3], b [3,2]"},
      {"batched_matmul",
       {f32({2, 1, 3}), f32({3, 3, 1})},
       {},
       "batched_matmul: leading axes do not stretch to one shape: a [2,1,3], b [3,3,1]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
