// Storages joined along their first axis, and that rows of a weight's gradient are computed apart.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

TEST(Rows, DerivativesMatchFiniteDifferences) {
  const std::vector<DerivativeCase> rows = {
      {"concat_rows", "concat_rows", {normal({2, 3}), normal({1, 3}, 1), normal({4, 3}, 2)}},
      {"concat_rows of vectors", "concat_rows", {normal({3}), normal({2}, 1)}},
      {"concat_rows of one", "concat_rows", {normal({3, 2})}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Rows, JoinAndSplit) {
  const RefTensor a = normal({2, 3}), b = normal({1, 3}, 1);
  const Tensors out = evaluate({a, b}, [](Builder& builder, const auto& v) {
    const ValueId whole = ops::concat_rows(builder, v, "whole");
    std::vector<ValueId> all = ops::split_rows(builder, whole, {2, 1});
    all.push_back(whole);
    return all;
  });
  EXPECT_EQ(distance({out[0], out[1]}, {a, b}), 0);
  std::vector<double> joined = a.data;
  joined.insert(joined.end(), b.data.begin(), b.data.end());
  EXPECT_EQ(out[2].data, joined);
  EXPECT_EQ(out[2].type.shape, (Shape{3, 3}));
}

TEST(Rows, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"concat_rows",
       {f32({2, 3}), f32({2, 4})},
       {},
       "concat_rows: parts differ in more than the first axis: part [2,3], part [2,4]"},
      {"concat_rows",
       {f32({2}), f32({2, 4})},
       {},
       "concat_rows: parts differ in more than the first axis: part [2], part [2,4]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
