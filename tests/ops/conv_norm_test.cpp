// Convolutions fused with batch normalisation: the two ops one after the other, and operands that do not fit.
#include "ops/conv_norm.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

const Shape kFilteredImages{2, 5, 4, 3}, kFilters{6, 3, 3, 3}, kFilteredRow{6};

Attrs conv_attrs(bool relu = false, double eps = 0) {
  const std::vector<int64_t> one{1, 1};
  Attrs attrs{{"stride", one}, {"padding", one}, {"dilation", one}, {"groups", int64_t{1}}};
  if (eps > 0) attrs.set("eps", eps);
  if (relu) attrs.set("relu", true);
  return attrs;
}

TEST(ConvNorm, IsTheTwoOps) {
  const RefTensor x = normal(kFilteredImages, 1), w = normal(kFilters, 2);
  const RefTensor y = evaluate("conv2d", {x, w}, conv_attrs())[0];
  const Tensors fused = evaluate("conv2d_statistics", {x, w}, conv_attrs());
  EXPECT_EQ(fused[0].data, y.data);
  const Tensors statistics = evaluate("batch_statistics", {y});
  EXPECT_EQ(fused[1].data, statistics[0].data);
  EXPECT_EQ(fused[2].data, statistics[1].data);
  const Tensors given{normal(kFilteredRow, 3), positive(kFilteredRow, 0.5, 4), normal(kFilteredRow, 5),
                      normal(kFilteredRow, 6), normal(y.type.shape, 7)};
  Tensors conv{x, w}, norm{y};
  conv.insert(conv.end(), given.begin(), given.end());
  norm.insert(norm.end(), given.begin(), given.end());
  EXPECT_EQ(evaluate("conv2d_batch_norm", conv, conv_attrs(true, 1e-3))[0].data,
            evaluate("batch_norm", norm, {{"eps", 1e-3}, {"relu", true}})[0].data);
}

TEST(ConvNorm, SaysWhatDoesNotFit) {
  const TensorType x = f32({1, 1, 1, 3}), w = f32({6, 1, 1, 3}), row = f32({6});
  Attrs plain = conv_attrs(), normed = conv_attrs(false, 1e-3);
  plain.set("padding", std::vector<int64_t>{0, 0});
  normed.set("padding", std::vector<int64_t>{0, 0});
  const std::vector<ErrorCase> rows = {
      {"conv2d_statistics",
       {x, f32({6, 1, 1, 4})},
       plain,
       "conv2d_statistics: channels of a group differ from the weight's: x [1,1,1,3], weight [6,1,1,4]"},
      {"conv2d_statistics",
       {x, w},
       plain,
       "conv2d_statistics: expected more than 1 value per channel: x [1,1,1,6]"},
      {"conv2d_batch_norm",
       {x, w, row, row, row, f32({3})},
       normed,
       "conv2d_batch_norm: bias must be [6], is [3]"},
  };
  for (const auto& row_of_table : rows) EXPECT_EQ(operand_error(row_of_table), row_of_table.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
