// Cross-entropy against smoothed and mixed targets: derivatives, known values, operands that do not fit.
#include "ops/soft_cross_entropy.h"

#include <gtest/gtest.h>

#include "ops/image_ops_torch.h"
#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

const RefTensor kFirstTargets = ints({2, 2}, {0, 2, -100, 1}), kSecondTargets = ints({2, 2}, {1, 2, 0, 0}),
                kShares = values({2, 2}, {0.3, 0.6, 0.5, 1});

Attrs smoothing(double share) { return {{"smoothing", share}}; }

TEST(SoftCrossEntropy, DerivativesMatchFiniteDifferences) {
  const RefTensor x = normal({2, 2, 5});
  for (const double share : {0.0, 0.1}) {
    const std::vector<DerivativeCase> rows = {
        {"one", "soft_cross_entropy", {x, kFirstTargets, kLossScale}, smoothing(share), {0}, 2},
        {"two",
         "soft_cross_entropy",
         {x, kFirstTargets, kLossScale, normal({1}), kSecondTargets, kShares},
         smoothing(share),
         {0},
         2,
         {5}}};
    for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
  }
}

/// Without smoothing and mixing it is the plain one; a mixture is the sum of its parts.
TEST(SoftCrossEntropy, IsMadeOfPlainOnes) {
  const RefTensor x = normal({1, 2, 5}), first = ints({1, 2}, {0, 2}), second = ints({1, 2}, {1, 4});
  const auto plain = [&](const RefTensor& targets) {
    return evaluate("cross_entropy", {x, targets, kLossScale})[0].data[0];
  };
  EXPECT_NEAR(evaluate("soft_cross_entropy", {x, first, kLossScale}, smoothing(0))[0].data[0], plain(first),
              1e-12);
  const RefTensor share = values({1, 2}, {0.25, 0.25});
  EXPECT_NEAR(evaluate("soft_cross_entropy", {x, first, kLossScale, absent(), second, share}, smoothing(0))[0]
                  .data[0],
              0.25 * plain(first) + 0.75 * plain(second), 1e-12);
  double everywhere = 0;
  for (const double c : {0, 1, 2, 3, 4}) everywhere += plain(ints({1, 2}, {c, c})) / 5;
  EXPECT_NEAR(evaluate("soft_cross_entropy", {x, first, kLossScale}, smoothing(0.2))[0].data[0],
              0.8 * plain(first) + 0.2 * everywhere, 1e-12);
}

TEST(SoftCrossEntropy, AgreesWithTorch) {
  const RefTensor x = recorded_operand({3, 5}, 1), scale = values({1}, {1.0 / 8});
  const RefTensor first = ints({3}, {1, 0, 4}), second = ints({3}, {2, 0, 3}),
                  share = values({3}, {0.25, 0.5, 1});
  expect_torch({"smoothed", "soft_cross_entropy", {x, ints({3}, {1, -100, 4}), scale}, smoothing(0.1)},
               kTorchSmoothed);
  expect_torch({"mixed", "soft_cross_entropy", {x, first, scale, absent(), second, share}, smoothing(0.1)},
               kTorchMixed);
}

TEST(SoftCrossEntropy, SaysWhatDoesNotFit) {
  const TensorType x = f32({2, 1, 3}), rows = i32({2, 1}), one = f32({1});
  const std::vector<ErrorCase> table = {
      {"soft_cross_entropy", {x, rows, one}, smoothing(1), "soft_cross_entropy: smoothing must be in [0, 1)"},
      {"soft_cross_entropy",
       {x, rows, one, {}, rows},
       smoothing(0),
       "soft_cross_entropy: second and share come together"},
      {"soft_cross_entropy",
       {x, rows, one, {}, rows, f32({2})},
       smoothing(0),
       "soft_cross_entropy: share must be [2,1], is [2]"},
      {"soft_cross_entropy_grad",
       {x, rows, f32({2}), one},
       smoothing(0),
       "soft_cross_entropy_grad: lse must be [2,1], is [2]"},
  };
  for (const auto& row : table) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
