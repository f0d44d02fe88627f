// Pooling: derivatives, known values, windows that do not fit.
#include "ops/pooling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/image_ops_torch.h"
#include "ops/op_testing.h"
#include "ops/pooling_window.h"

namespace plimsoll::ops_testing {
namespace {

using Ints = std::vector<int64_t>;

Attrs pool_window(Ints kernel, Ints stride, Ints padding) {
  return {{"kernel", std::move(kernel)}, {"stride", std::move(stride)}, {"padding", std::move(padding)}};
}
const std::vector<Attrs> kPoolWindows = {
    pool_window({3, 3}, {2, 2}, {1, 1}), pool_window({2, 2}, {2, 2}, {0, 0}),
    pool_window({3, 2}, {1, 3}, {1, 0}), pool_window({1, 1}, {2, 1}, {0, 0})};

TEST(Pooling, DerivativesMatchFiniteDifferences) {
  const RefTensor x = normal({2, 5, 6, 2});
  for (const Attrs& attrs : kPoolWindows) {
    EXPECT_LT(derivative_error({"max", "max_pool2d", {x}, attrs}), kDerivativeTolerance);
    EXPECT_LT(derivative_error({"mean", "avg_pool2d", {x}, attrs}), kDerivativeTolerance);
    Attrs skips = attrs;
    skips.set("skip_padding", true);
    EXPECT_LT(derivative_error({"mean of what is there", "avg_pool2d", {x}, skips}), kDerivativeTolerance);
  }
}

TEST(Pooling, AgreesWithTorch) {
  const RefTensor x = recorded_operand({1, 5, 6, 1}, 1);
  expect_torch({"max", "max_pool2d", {x}, kPoolWindows[0]}, kTorchMaxPool);
  expect_torch({"mean", "avg_pool2d", {x}, kPoolWindows[0]}, kTorchAvgPool);
  Attrs skips = kPoolWindows[0];
  skips.set("skip_padding", true);
  expect_torch({"mean of what is there", "avg_pool2d", {x}, skips}, kTorchAvgPoolSkips);
}

TEST(Pooling, TheFirstOfEqualElementsCountsAndWhatIsNoNumberWins) {
  const Tensors y =
      evaluate("max_pool2d", {values({1, 2, 4, 1}, {1, 1, 5, NAN, 1, 1, 7, 9})}, kPoolWindows[1]);
  EXPECT_EQ(y[0].data[0], 1);
  EXPECT_EQ(y[1].data[0], 0);
  EXPECT_TRUE(std::isnan(y[0].data[1]));
  EXPECT_EQ(y[1].data[1], 1) << "no element is larger than what is not a number";
}

TEST(Pooling, PaddingIsNeverTheLargestAndCountsInAMeanUnlessSkipped) {
  const RefTensor x = values({1, 2, 2, 1}, {-1, -2, -3, -4});
  const Attrs padded = pool_window({3, 3}, {2, 2}, {1, 1});
  EXPECT_EQ(evaluate("max_pool2d", {x}, padded)[0].data, (std::vector<double>{-1}));
  EXPECT_LT(distance(evaluate("avg_pool2d", {x}, padded)[0], values({1, 1, 1, 1}, {-10.0 / 9})), 1e-15);
  Attrs skips = padded;
  skips.set("skip_padding", true);
  EXPECT_LT(distance(evaluate("avg_pool2d", {x}, skips)[0], values({1, 1, 1, 1}, {-2.5})), 1e-15);
}

TEST(Pooling, TheMeanOfAnImageIsOneNumberAChannel) {
  const auto build = [](Builder& b, const std::vector<ValueId>& in) {
    return std::vector<ValueId>{ops::global_mean(b, in[0])};
  };
  EXPECT_EQ(evaluate({values({1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 6, 60})}, build)[0].data,
            (std::vector<double>{3, 30}));
}

/// An element's windows are those that have it among their elements.
TEST(Pooling, WindowsThatCoverAnElement) {
  for (const ops::PoolAxis axis :
       {ops::PoolAxis{7, 3, 2, 1}, ops::PoolAxis{8, 2, 3, 0}, ops::PoolAxis{5, 5, 1, 2}})
    for (int64_t i = 0; i < axis.extent; ++i)
      for (int64_t w = 0; w < axis.windows(); ++w) {
        const ops::PoolRange elements = axis.elements(w), covering = axis.covering(i);
        EXPECT_EQ(w >= covering.begin && w < covering.end, i >= elements.begin && i < elements.end);
      }
}

TEST(Pooling, SaysWhatDoesNotFit) {
  const TensorType x = f32({2, 8, 8, 3});
  const std::vector<ErrorCase> rows = {
      {"max_pool2d",
       {f32({8, 8, 3})},
       kPoolWindows[0],
       "max_pool2d: x must have the axes N, H, W, C: x [8,8,3]"},
      {"max_pool2d",
       {x},
       pool_window({16, 16}, {1, 1}, {0, 0}),
       "max_pool2d: a window has more than 255 positions"},
      {"avg_pool2d",
       {x},
       pool_window({9, 2}, {1, 1}, {0, 0}),
       "avg_pool2d: the window is larger than the image: x [2,8,8,3]"},
      {"avg_pool2d",
       {x},
       pool_window({2, 2}, {1, 1}, {1, 2}),
       "avg_pool2d: padding must be at most half of the kernel"},
      {"max_pool2d",
       {x},
       pool_window({2, 2}, {0, 1}, {0, 0}),
       "max_pool2d: kernel, stride and padding must be pairs of small positive numbers"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
  Attrs sized = kPoolWindows[1];
  sized.set("size", Ints{8, 7});
  EXPECT_EQ(operand_error({"avg_pool2d_grad", {f32({2, 4, 4, 3})}, sized, ""}),
            "avg_pool2d_grad: dy is not of the shape that an image of `size` is pooled to: dy [2,4,4,3]");
}

}  // namespace
}  // namespace plimsoll::ops_testing
