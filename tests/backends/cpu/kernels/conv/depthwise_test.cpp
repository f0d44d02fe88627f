// The kernels of depthwise convolutions against their references.
#include "backends/cpu/kernels/conv/depthwise.h"

#include "backends/cpu/kernels/conv/conv_cases.h"

namespace plimsoll::cpu::fixtures {
namespace {

/// Fewer channels than a block and more, rows that are whole groups of pixels and not, more images than are
/// summed at once, an image that takes several bands.
const std::vector<ConvCase>& depthwise_cases() {
  static const std::vector<ConvCase> cases = {
      {{2, 9, 11, 40}, {40, 7, 7, 1}, {.padding = {3, 3}, .groups = 40}, true},
      {{1, 5, 16, 3}, {3, 3, 3, 1}, {.padding = {1, 1}, .groups = 3}},
      {{17, 4, 4, 33}, {33, 3, 3, 1}, {.padding = {1, 1}, .groups = 33}},
      {{2, 9, 8, 34}, {34, 3, 5, 1}, {.stride = {2, 3}, .padding = {1, 2}, .groups = 34}, true},
      {{1, 8, 9, 2}, {2, 2, 9, 1}, {.padding = {3, 4}, .dilation = {3, 1}, .groups = 2}},
      {{1, 40, 70, 5}, {5, 3, 3, 1}, {.stride = {1, 1}, .padding = {1, 1}, .groups = 5}},
      {{1, 6, 5, 4}, {8, 3, 3, 1}, {.padding = {1, 1}, .groups = 4}},  // two results a channel: products
  };
  return cases;
}

TEST(Depthwise, AgainstReference) {
  for (const ConvCase& c : depthwise_cases()) {
    expect_op(c.forward(), 3e-6);
    expect_op(c.input_grad(), 3e-6);
    expect_op(c.weight_grad(false), 3e-6);
    expect_op(c.weight_grad(true), 3e-6);
  }
}

TEST(Depthwise, StoredDtypes) {
  expect_stored_dtypes({{{2, 9, 7, 40}, {40, 7, 7, 1}, {.padding = {3, 3}, .groups = 40}},
                        {{2, 8, 7, 8}, {8, 3, 3, 1}, {.stride = {2, 2}, .padding = {1, 1}, .groups = 8}}});
}

/// A gradient of images one at a time is that of all.
TEST(Depthwise, WeightGradGoesOnWhereAnotherMicroBatchStopped) {
  expect_images_one_at_a_time({{2, 9, 7, 35}, {35, 3, 3, 1}, {.padding = {1, 1}, .groups = 35}});
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
