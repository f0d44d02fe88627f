// Group normalisation: derivative, its relation to layer normalisation, operands that do not fit.
#include "ops/group_norm.h"

#include <gtest/gtest.h>

#include "ops/image_ops_torch.h"
#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

Attrs group_attrs(int64_t count) { return {{"groups", count}, {"eps", 1e-3}}; }

TEST(GroupNorm, DerivativeMatchesFiniteDifferences) {
  for (const int64_t count : {1, 2, 4}) {
    const DerivativeCase row{
        "", "group_norm", {normal({2, 2, 3, 4}), normal({4}, 1), normal({4}, 2)}, group_attrs(count)};
    EXPECT_LT(derivative_error(row), kDerivativeTolerance) << count;
  }
}

/// One pixel and one group: the layer norm of its channels.
TEST(GroupNorm, OfOneGroupAndOnePixelIsALayerNorm) {
  const RefTensor x = normal({3, 1, 8}), weight = normal({8}, 1), bias = normal({8}, 2);
  const Tensors group = evaluate("group_norm", {x, weight, bias}, group_attrs(1));
  const Tensors layer = evaluate("layer_norm", {x, weight, bias}, {{"eps", 1e-3}});
  EXPECT_LT(distance(group[0], layer[0]), 1e-12);
}

TEST(GroupNorm, AgreesWithTorch) {
  expect_torch({"",
                "group_norm",
                {recorded_operand({2, 2, 2, 4}, 1), recorded_operand({4}, 2), recorded_operand({4}, 3)},
                group_attrs(2)},
               kTorchGroupNorm);
}

TEST(GroupNorm, SaysWhatDoesNotFit) {
  const TensorType x = f32({2, 3, 3, 8}), row = f32({8});
  const std::vector<ErrorCase> rows = {
      {"group_norm",
       {x, row, row},
       group_attrs(3),
       "group_norm: groups must divide the channels: x [2,3,3,8]"},
      {"group_norm",
       {x, row, row},
       group_attrs(0),
       "group_norm: groups must divide the channels: x [2,3,3,8]"},
      {"group_norm",
       {f32({2, 8}), row, row},
       group_attrs(2),
       "group_norm: x must have axes between the samples and the channels: x [2,8]"},
      {"group_norm_grad",
       {x, x, row, f32({2, 3}), f32({2, 3})},
       {},
       "group_norm_grad: mean must be of samples and groups: mean [2,3], x [2,3,3,8]"},
  };
  for (const auto& row_of_table : rows) EXPECT_EQ(operand_error(row_of_table), row_of_table.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
