// Layer scale and stochastic depth: derivatives, draws, operands that do not fit.
#include "ops/layer_scale.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

TEST(LayerScale, DerivativesMatchFiniteDifferences) {
  const RefTensor residual = normal({3, 2, 4}, 1), branch = normal({3, 2, 4}, 2), scale = normal({4}, 3);
  const RefTensor kept = values({3}, {0, 1.25, 2});
  const std::vector<DerivativeCase> rows = {
      {"both", "scaled_add", {residual, branch, scale, kept}, {}, {0}, -1, {3}},
      {"scale", "scaled_add", {residual, branch, scale}},
      {"kept", "scaled_add", {residual, branch, absent(), kept}, {}, {0}, -1, {3}}};
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

/// A frozen scale gives no gradient of its own.
TEST(LayerScale, AFrozenScaleGivesTheBranchAlone) {
  const Tensors in{normal({3, 2, 4}, 1), normal({3, 2, 4}, 2), normal({4}, 3)};
  EXPECT_EQ(evaluate("scaled_add_grad", in, {{"frozen", true}}).size(), 1U);
}

TEST(LayerScale, DrawsOfASampleDependOnItsPlaceInTheBatchAlone) {
  const Attrs attrs{{"count", int64_t{2000}}, {"p", 0.2}, {"key", int64_t{5}}};
  const Tensors whole = evaluate("kept_samples", {ints({4}, {7, 8, 3, 100})}, attrs);
  size_t dropped = 0;
  for (const double kept : whole[0].data) {
    EXPECT_TRUE(kept == 0 || kept == 1.25);
    dropped += kept == 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(dropped), 400, 60);
  Attrs part = attrs;
  part.set("count", int64_t{10});
  const Tensors second = evaluate("kept_samples", {ints({4}, {7, 8, 3, 110})}, part);
  EXPECT_EQ(second[0].data, std::vector<double>(whole[0].data.begin() + 10, whole[0].data.begin() + 20));
}

TEST(LayerScale, SaysWhatDoesNotFit) {
  const TensorType x = f32({3, 2, 4});
  const std::vector<ErrorCase> rows = {
      {"scaled_add", {x, x}, {}, "scaled_add: scale and kept are absent"},
      {"scaled_add", {x, x, f32({3})}, {}, "scaled_add: scale must be [4], is [3]"},
      {"scaled_add", {x, x, {}, f32({4})}, {}, "scaled_add: kept must be [3], is [4]"},
      {"scaled_add",
       {f32({3, 4}), f32({3, 4}), f32({4})},
       {},
       "scaled_add: branch must have axes between the samples and the channels: branch [3,4]"},
      {"scaled_add_grad", {x, x, {}, f32({3})}, {}, "scaled_add_grad: a scale that is absent does not learn"},
      {"kept_samples",
       {i32({4})},
       {{"count", int64_t{3}}, {"p", 1.0}, {"key", int64_t{1}}},
       "kept_samples: p must be in [0, 1)"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
