// Pooling over windows of images [N, H, W, C]. The conventions are those of ops.h.
#pragma once

#include <array>
#include <cstdint>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

struct Pool2d {
  std::array<int64_t, 2> kernel{2, 2}, stride{2, 2}, padding{0, 0};
};
/// Positions of a window along an axis of `extent`: torch's, rounded down.
constexpr int64_t pooled_extent(int64_t extent, int64_t kernel, int64_t stride, int64_t padding) {
  return (extent + 2 * padding - kernel) / stride + 1;
}
/// Positions of a window are numbered in a byte.
inline constexpr int64_t kMostPositions = 255;

/// The largest element of each window; padding never is one. Of equal elements the first counts, and what is
/// not a number wins. Op `max_pool2d`(x) {kernel, stride, padding} -> y as x [N, OH, OW, C], index u8: the
/// element's position in the window, kh * KW + kw. Backward keeps the index alone:
/// `max_pool2d_grad`(dy, index) {kernel, stride, padding, size, out?} -> dx [N, size, C]; an element adds up
/// its windows in the order of rows, then columns.
ValueId max_pool2d(Builder& b, ValueId x, const Pool2d& pool);
/// The mean of each window. Padding counts as zeros, as torch's `count_include_pad`, unless `count_padding`
/// is false: then the mean is over the elements that are there. Op `avg_pool2d`(x) {kernel, stride, padding,
/// skip_padding?}; `avg_pool2d_grad`(dy) {kernel, stride, padding, skip_padding?, size, out?} -> dx.
ValueId avg_pool2d(Builder& b, ValueId x, const Pool2d& pool, bool count_padding = true);
/// The mean over the image: [N, H, W, C] -> f32[N, C]. A `reduce`.
ValueId global_mean(Builder& b, ValueId x);

}  // namespace plimsoll::ops
