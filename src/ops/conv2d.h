// Convolutions over images. The conventions are those of ops.h; an image is [height, width, channels], and
// the channels lie side by side.
#pragma once

#include <array>
#include <cstdint>

#include "ir/builder.h"
#include "ir/shape.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

/// How the kernel moves over the image: height first, then width. Channels of x and of the result are cut
/// into `groups`; each group of results reads its group of x.
struct Conv2d {
  std::array<int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
};

/// y[n, i, j, o] = bias[o] + sum over kh, kw, c of
///   x[n, i stride + kh dilation - padding, j …, c] weight[o, kh, kw, c]; x is zero outside the image.
/// x [images, height, width, channels], weight [out, kernel height, kernel width, channels / groups], bias
/// [out] or absent -> [images, out height, out width, out], where out height is
/// (height + 2 padding - dilation (kernel height - 1) - 1) / stride + 1, rounded down.
/// Op `conv2d`(x, weight, bias?) {stride, padding, dilation, groups, precision?, out?}. vjp:
/// `conv2d_input_grad`(dy, weight) {…, size} -> [images, size, channels], `conv2d_weight_grad`(x, dy, acc?)
/// {…, kernel} -> as weight, a reduction over the pixels of dy in granules that restart at each image; the
/// bias's gradient is `sum_rows`(dy).
/// The same op with stride equal to the kernel is a patch embedding.
/// Memory: nothing beside the operands is kept.
ValueId conv2d(Builder& b, ValueId x, ValueId weight, ValueId bias, const Conv2d& how);

/// The extents of a convolution, of x, the weight and y.
struct ConvExtents {
  int64_t images = 0, height = 0, width = 0, channels = 0;
  int64_t out_height = 0, out_width = 0, out_channels = 0;
  int64_t kernel_height = 0, kernel_width = 0;
  Conv2d how = {};

  [[nodiscard]] int64_t group_channels() const { return channels / how.groups; }
  [[nodiscard]] int64_t group_outputs() const { return out_channels / how.groups; }
  /// Products in one result.
  [[nodiscard]] int64_t taps() const { return kernel_height * kernel_width * group_channels(); }
  /// Pixels of an image's result, and of all.
  [[nodiscard]] int64_t out_pixels() const { return out_height * out_width; }
  [[nodiscard]] int64_t rows() const { return images * out_pixels(); }
  /// Whether it is the product of x's pixels and the weight, without patches.
  [[nodiscard]] bool is_product() const;
  /// One channel of x for each result.
  [[nodiscard]] bool is_depthwise() const { return group_channels() == 1 && how.groups > 1; }
};
/// What an op of a convolution computes: y from (x, weight), the gradient of x from (dy, weight), or that of
/// the weight from (x, dy). These are its first two operands.
enum class ConvOp : uint8_t { kForward, kInputGrad, kWeightGrad };
/// Of checked operands: the shapes of the op's first two and of its result.
ConvExtents conv_extents(ConvOp op, const ir::Shape& first, const ir::Shape& second, const ir::Shape& result,
                         const ir::Attrs& attrs);
ConvExtents conv_extents(ConvOp op, const ir::OpTypes& types);

}  // namespace plimsoll::ops
