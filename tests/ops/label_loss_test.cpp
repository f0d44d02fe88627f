// Losses against float labels: derivatives, known values, rows without labels, operands that do not fit.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

const RefTensor kLabels = values({2, 1, 3}, {0, 1, 1, 1, 0, 0.25});
RefTensor without_second(RefTensor labels) {
  for (size_t i = 3; i < 6; ++i) labels.data[i] = NAN;
  return labels;
}

TEST(LabelLoss, DerivativesMatchFiniteDifferences) {
  const RefTensor x = normal({2, 1, 3});
  for (const char* op : {"bce_with_logits", "squared_error"}) {
    const std::vector<DerivativeCase> rows = {
        {op, op, {x, kLabels, kLossScale}, {}, {0}, 2, {1}},
        {op, op, {x, without_second(kLabels), kLossScale, normal({1})}, {}, {0}, 2, {1}}};
    for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
  }
}

TEST(LabelLoss, GivesKnownValues) {
  const RefTensor x = values({2, 1, 2}, {0, 2000, -3, -1000}), y = values({2, 1, 2}, {1, 1, 0, 1});
  const double first = std::log(2.0) / 2, second = (std::log1p(std::exp(-3.0)) + 1000) / 2;
  EXPECT_LT(distance(evaluate("bce_with_logits", {x, y, kLossScale})[0], values({1}, {first + second})),
            1e-15);
  EXPECT_LT(distance(evaluate("bce_with_logits", {x, y, kLossScale, values({1}, {4})})[0],
                     values({1}, {first + second + 4})),
            1e-15);
  const Tensors square =
      evaluate("squared_error", {values({2, 1}, {1, 4}), values({2, 1}, {3, 1}), kLossScale});
  EXPECT_EQ(square[0].data[0], 4 + 9);
}

TEST(LabelLoss, RowsWithoutLabelsCountNowhere) {
  const RefTensor x = normal({2, 1, 3}), y = without_second(kLabels);
  for (const std::string op : {"bce_with_logits", "squared_error"}) {
    const Tensors grad = evaluate(op + "_grad", {x, y, kLossScale});
    for (size_t i = 3; i < 6; ++i) EXPECT_EQ(grad[0].data[i], 0) << op;
    const RefTensor one = values({1, 1, 3}, {x.data[0], x.data[1], x.data[2]});
    const RefTensor labels = values({1, 1, 3}, {0, 1, 1});
    EXPECT_EQ(evaluate(op, {x, y, kLossScale})[0].data, evaluate(op, {one, labels, kLossScale})[0].data)
        << op;
  }
}

TEST(LabelLoss, SaysWhatDoesNotFit) {
  const TensorType x = f32({2, 1, 3}), one = f32({1});
  const std::vector<ErrorCase> rows = {
      {"bce_with_logits", {x, f32({2, 3}), one}, {}, "bce_with_logits: labels must be [2,1,3], is [2,3]"},
      {"bce_with_logits", {x, i32({2, 1, 3}), one}, {}, "bce_with_logits: labels must be f32, is i32[2,1,3]"},
      {"squared_error", {x, x, f32({2})}, {}, "squared_error: grad_scale must be [1], is [2]"},
      {"squared_error", {x, x, one, f32({2})}, {}, "squared_error: acc must be [1], is [2]"},
      {"squared_error_grad",
       {x, f32({2, 3}), one},
       {},
       "squared_error_grad: labels must be [2,1,3], is [2,3]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
