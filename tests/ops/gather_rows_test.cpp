// Rows of each sequence: derivative, known values, operands that do not fit.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

TEST(GatherRows, DerivativeMatchesFiniteDifferences) {
  for (const RefTensor& index : {ints({3}, {3, 0, 2}), ints({3, 2}, {1, 3, 0, -1, -1, -1})}) {
    const DerivativeCase row{"gather_rows", "gather_rows", {normal({3, 4, 5}), index}};
    EXPECT_LT(derivative_error(row), kDerivativeTolerance);
  }
}

TEST(GatherRows, GivesKnownValues) {
  const RefTensor index = ints({2}, {1, 0});
  const Tensors y = evaluate("gather_rows", {values({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), index});
  EXPECT_EQ(y[0].type.shape, (Shape{2, 1, 2}));
  EXPECT_EQ(y[0].data, (std::vector<double>{3, 4, 5, 6}));
  const Tensors dx =
      evaluate("gather_rows_grad", {values({2, 1, 2}, {1, 2, 3, 4}), index}, {{"rows", int64_t{2}}});
  EXPECT_EQ(dx[0].data, (std::vector<double>{0, 0, 1, 2, 3, 4, 0, 0}));
}

TEST(GatherRows, TakesAsManyOfEachSequence) {
  const RefTensor index = ints({2, 2}, {0, 2, 1, -1});
  const Tensors y = evaluate("gather_rows", {values({2, 3, 1}, {1, 2, 3, 4, 5, 6}), index});
  EXPECT_EQ(y[0].type.shape, (Shape{2, 2, 1}));
  EXPECT_EQ(y[0].data, (std::vector<double>{1, 3, 5, 0}));
  const Tensors dx =
      evaluate("gather_rows_grad", {values({2, 2, 1}, {1, 2, 3, 4}), index}, {{"rows", int64_t{3}}});
  EXPECT_EQ(dx[0].data, (std::vector<double>{1, 0, 2, 0, 3, 0}));
}

TEST(GatherRows, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"gather_rows", {f32({2, 3}), i32({2})}, {}, "gather_rows: x must have three axes: x [2,3]"},
      {"gather_rows", {f32({2, 3, 4}), i32({3})}, {}, "gather_rows: index must be [2], is [3]"},
      {"gather_rows", {f32({2, 3, 4}), f32({2})}, {}, "gather_rows: index must be i32, is f32[2]"},
      {"gather_rows_grad",
       {f32({2, 3, 4}), i32({2})},
       {{"rows", int64_t{3}}},
       "gather_rows_grad: dy must have a row for each index: dy [2,3,4], index [2]"},
      {"gather_rows", {f32({2, 3, 4}), i32({3, 5})}, {}, "gather_rows: index must be [2,5], is [3,5]"},
      {"gather_rows_grad",
       {f32({2, 1, 4}), i32({2})},
       {{"rows", int64_t{0}}},
       "gather_rows_grad: rows 0 out of range"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
