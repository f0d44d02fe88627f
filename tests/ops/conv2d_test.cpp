// Convolutions: derivatives, values of PyTorch, operands that do not fit.
#include "ops/conv2d.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

using Pair = std::vector<int64_t>;

Attrs how(Pair stride, Pair padding, Pair dilation = {1, 1}, int64_t groups = 1) {
  return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
}
Attrs with(Attrs attrs, std::string_view name, Pair value) {
  attrs.set(name, value);
  return attrs;
}

TEST(Conv2d, DerivativesMatchFiniteDifferences) {
  const std::vector<DerivativeCase> rows = {
      {"3x3", "conv2d", {normal({2, 5, 4, 2}), normal({3, 3, 3, 2}, 1), normal({3}, 2)}, how({1, 1}, {1, 1})},
      {"stride", "conv2d", {normal({2, 6, 5, 2}), normal({2, 3, 2, 2}, 1)}, how({2, 3}, {1, 0})},
      {"dilation", "conv2d", {normal({1, 7, 6, 2}), normal({2, 2, 3, 2}, 1)}, how({2, 1}, {2, 1}, {3, 2})},
      {"groups", "conv2d", {normal({1, 4, 4, 4}), normal({6, 3, 3, 2}, 1)}, how({1, 2}, {1, 1}, {1, 1}, 2)},
      {"depthwise",
       "conv2d",
       {normal({2, 5, 5, 3}), normal({3, 3, 3, 1}, 1)},
       how({1, 1}, {1, 1}, {1, 1}, 3)},
      {"patches", "conv2d", {normal({2, 6, 4, 3}), normal({5, 3, 2, 3}, 1)}, how({3, 2}, {0, 0})},
  };
  for (const DerivativeCase& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

/// torch.nn.functional.conv2d of arange inputs, its layouts permuted: x[c,h,w] = 12 c + 4 h + w over 2 x 3 x
/// 4, weight[o,c,kh,kw] = 8 o + 4 c + 2 kh + kw over 2 x 2 x 2 x 2, bias (1, -1), stride (1, 2), padding (1,
/// 0).
TEST(Conv2d, GivesPyTorchsValues) {
  RefTensor x = values({1, 3, 4, 2}, std::vector<double>(24)),
            w = values({2, 2, 2, 2}, std::vector<double>(16));
  for (size_t h = 0; h < 3; ++h)
    for (size_t i = 0; i < 4; ++i)
      for (size_t c = 0; c < 2; ++c) x.data[(h * 4 + i) * 2 + c] = static_cast<double>(12 * c + 4 * h + i);
  for (size_t o = 0; o < 2; ++o)
    for (size_t k = 0; k < 4; ++k)
      for (size_t c = 0; c < 2; ++c) w.data[(o * 4 + k) * 2 + c] = static_cast<double>(8 * o + 4 * c + k);
  const auto y = evaluate("conv2d", {x, w, values({2}, {1, -1})}, how({1, 2}, {1, 0}))[0];
  EXPECT_EQ(y.type.shape, (Shape{1, 4, 2, 2}));
  EXPECT_EQ(y.data, (std::vector<double>{167, 373, 203, 473, 353, 895, 409, 1079, 465, 1263, 521, 1447, 195,
                                         657, 215, 741}));
}

TEST(Conv2d, ContinuesAnAccumulator) {
  const RefTensor x = normal({2, 4, 4, 2}), dy = normal({2, 4, 4, 3}, 1), acc = normal({3, 3, 3, 2}, 2);
  const Attrs attrs = with(how({1, 1}, {1, 1}), "kernel", {3, 3});
  const auto alone = evaluate("conv2d_weight_grad", {x, dy}, attrs)[0];
  auto continued = evaluate("conv2d_weight_grad", {x, dy, acc}, attrs)[0];
  for (size_t i = 0; i < acc.data.size(); ++i) continued.data[i] -= acc.data[i];
  EXPECT_LT(distance(alone, continued), 1e-12);
}

TEST(Conv2d, SaysWhatDoesNotFit) {
  const Attrs plain = how({1, 1}, {0, 0});
  const std::vector<ErrorCase> rows = {
      {"conv2d",
       {f32({1, 4, 4}), f32({2, 3, 3, 2})},
       plain,
       "conv2d: images and weights have four axes: x [1,4,4]"},
      {"conv2d",
       {f32({1, 4, 4, 3}), f32({2, 3, 3, 2})},
       plain,
       "conv2d: channels of a group differ from the weight's: x [1,4,4,3], weight [2,3,3,2]"},
      {"conv2d",
       {f32({1, 2, 4, 2}), f32({2, 3, 3, 2})},
       plain,
       "conv2d: the kernel is larger than the padded image: x [1,2,4,2], weight [2,3,3,2]"},
      {"conv2d",
       {f32({1, 4, 4, 2}), f32({2, 3, 3, 2})},
       how({0, 1}, {0, 0}),
       "conv2d: stride must be two numbers from 1 to 16384"},
      {"conv2d",
       {f32({1, 4, 4, 2}), f32({3, 3, 3, 1})},
       how({1, 1}, {0, 0}, {1, 1}, 2),
       "conv2d: groups must divide the results of weight: x [1,4,4,2], weight [3,3,3,1]"},
      {"conv2d", {f32({1, 4, 4, 2}), f32({3, 3, 3, 2}), f32({2})}, plain, "conv2d: bias must be [3], is [2]"},
      {"conv2d_input_grad",
       {f32({1, 4, 4, 2}), f32({2, 3, 3, 2})},
       with(plain, "size", {4, 4}),
       "conv2d_input_grad: dy must be [1,2,2,2], is [1,4,4,2]"},
      {"conv2d_weight_grad",
       {f32({1, 4, 4, 2}), f32({1, 2, 2, 3}), f32({3, 3, 3, 1})},
       with(plain, "kernel", {3, 3}),
       "conv2d_weight_grad: acc must be [3,3,3,2], is [3,3,3,1]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
