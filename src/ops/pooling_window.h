// Windows of pooling, for references and kernels: where they lie, and which of them cover an element.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/attrs.h"
#include "ops/pooling.h"

namespace plimsoll::ops {

/// A range of elements or of windows along one axis.
struct PoolRange {
  int64_t begin = 0, end = 0;
  [[nodiscard]] int64_t count() const { return end - begin; }
};

/// Windows along one axis of `extent` elements.
struct PoolAxis {
  int64_t extent = 1, kernel = 1, stride = 1, padding = 0;
  [[nodiscard]] int64_t windows() const { return pooled_extent(extent, kernel, stride, padding); }
  /// The first element of the window, which padding may hold: negative.
  [[nodiscard]] int64_t start(int64_t window) const { return window * stride - padding; }
  /// The window's elements without padding.
  [[nodiscard]] PoolRange elements(int64_t window) const {
    return {std::max<int64_t>(0, start(window)), std::min(extent, start(window) + kernel)};
  }
  /// The windows that cover the element.
  [[nodiscard]] PoolRange covering(int64_t element) const {
    const int64_t first = element + padding - kernel + 1;
    return {first <= 0 ? 0 : (first + stride - 1) / stride,
            std::min(windows(), (element + padding) / stride + 1)};
  }
};

/// What the mean of window (row, col) is divided by: its positions, or the elements that are there.
inline int64_t mean_divisor(const PoolAxis& rows, const PoolAxis& cols, bool skip_padding, int64_t row,
                            int64_t col) {
  if (!skip_padding) return rows.kernel * cols.kernel;
  return rows.elements(row).count() * cols.elements(col).count();
}

/// The axis of height (0) or width (1) of an image of those attributes.
inline PoolAxis pool_axis(const ir::Attrs& attrs, size_t axis, int64_t extent) {
  return {extent, attrs.ints("kernel")[axis], attrs.ints("stride")[axis], attrs.ints("padding")[axis]};
}

}  // namespace plimsoll::ops
