// The kernels of convolutions against their references: borders, strides, dilation, groups, short dtypes.

#include "backends/cpu/kernels/conv/conv_cases.h"

namespace plimsoll::cpu::fixtures {
namespace {

/// Each with borders where taps lie outside; more channels than a vector has and fewer; rows that are whole
/// panels of every instruction set and not.
const std::vector<ConvCase>& conv_cases() {
  static const std::vector<ConvCase> cases = {
      {{2, 9, 8, 16}, {24, 3, 3, 16}, {.padding = {1, 1}}, true},              // as a residual block's
      {{1, 5, 7, 70}, {50, 3, 3, 70}, {.padding = {1, 1}}},                    // more than a granule of taps
      {{2, 11, 13, 3}, {20, 7, 7, 3}, {.stride = {2, 2}, .padding = {3, 3}}},  // a first convolution
      {{2, 8, 7, 20}, {10, 3, 3, 20}, {.stride = {2, 2}, .padding = {1, 1}}},
      {{2, 7, 7, 18}, {33, 1, 1, 18}, {}, true},                 // a product
      {{2, 7, 6, 18}, {33, 1, 1, 18}, {.stride = {2, 2}}},       // pixels that no tap reaches
      {{1, 12, 9, 3}, {17, 4, 3, 3}, {.stride = {4, 3}}, true},  // patches
      {{1, 9, 10, 5}, {6, 3, 2, 5}, {.stride = {1, 3}, .padding = {3, 2}, .dilation = {2, 3}}},
      {{1, 10, 9, 4}, {6, 3, 3, 4}, {.stride = {2, 4}, .padding = {4, 1}, .dilation = {4, 2}}},
      {{2, 6, 6, 12}, {18, 3, 3, 4}, {.padding = {1, 1}, .groups = 3}, true},
      {{1, 65, 64, 16}, {8, 3, 3, 16}, {.padding = {1, 1}}, true},  // very many rows
      {{1, 3, 3, 2}, {4, 3, 3, 2}, {.padding = {5, 5}}},            // patches of nothing but zeros
  };
  return cases;
}

TEST(Conv2d, AgainstReference) {
  for (const ConvCase& c : conv_cases()) expect_op(c.forward(), 3e-6);
}

TEST(Conv2dInputGrad, AgainstReference) {
  for (const ConvCase& c : conv_cases()) expect_op(c.input_grad(), 3e-6);
}

TEST(Conv2dWeightGrad, AgainstReference) {
  for (const ConvCase& c : conv_cases()) {
    expect_op(c.weight_grad(false), 3e-6);
    expect_op(c.weight_grad(true), 3e-6);
  }
}

TEST(Conv2d, StoredDtypes) {
  expect_stored_dtypes({{{2, 9, 8, 64}, {40, 3, 3, 64}, {.padding = {1, 1}}},
                        {{2, 9, 8, 20}, {33, 3, 3, 20}, {.stride = {2, 1}, .padding = {1, 0}}},
                        {{1, 17, 17, 3}, {40, 7, 7, 3}, {.stride = {2, 2}, .padding = {3, 3}}}});
}

/// A gradient of images one at a time is that of all.
TEST(Conv2dWeightGrad, GoesOnWhereAnotherMicroBatchStopped) {
  expect_images_one_at_a_time({{2, 17, 17, 20}, {24, 3, 3, 20}, {.padding = {1, 1}}});
  expect_images_one_at_a_time({{2, 7, 7, 20}, {24, 1, 1, 20}});
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
