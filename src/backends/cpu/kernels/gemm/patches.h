// The left operand of a convolution's product, as it lies in the image: packing gathers what it needs, and
// the matrix of patches is written nowhere (Chellapilla, Puri and Simard 2006 write it; Dukhan 2019,
// arXiv:1907.02129, gathers).
//
//   row (image, i, j)   the taps of one position of the kernel:
//                       kh 0:  kw 0: channels | kw 1: channels | …
//                       kh 1:  …
//   a tap outside the image is a pixel of zeros
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace plimsoll::cpu {

/// A matrix [images * rows_down * rows_across, taps_down * taps_across * channels]. Axes: height, then width.
struct Patches {
  const std::byte* data = nullptr;         ///< the first pixel of the first image
  int64_t height = 0, width = 0;           ///< of an image
  int64_t pixel = 0, channels = 0;         ///< elements from pixel to pixel, and of one that are read
  std::array<int64_t, 2> rows = {};        ///< positions of the kernel
  std::array<int64_t, 2> taps = {};        ///< of the kernel
  std::array<int64_t, 2> first = {};       ///< pixel of the first tap at the first position
  std::array<int64_t, 2> step = {1, 1};    ///< pixels between positions
  std::array<int64_t, 2> spread = {1, 1};  ///< pixels between taps

  [[nodiscard]] int64_t row_taps() const { return taps[0] * taps[1] * channels; }
};

/// Where the first tap of a row lies; outside the image too.
struct PatchCorner {
  int64_t h = 0, w = 0;
  int64_t offset = 0;  ///< of that pixel, in elements from Patches::data
};

/// The rows in order.
class PatchCursor {
 public:
  PatchCursor(const Patches& x, int64_t row)
      : x_(x),
        image_(row / (x.rows[0] * x.rows[1])),
        down_(row % (x.rows[0] * x.rows[1]) / x.rows[1]),
        across_(row % x.rows[1]) {}

  /// Of the next row.
  PatchCorner take() {
    const int64_t h = x_.first[0] + down_ * x_.step[0], w = x_.first[1] + across_ * x_.step[1];
    const PatchCorner corner{h, w, ((image_ * x_.height + h) * x_.width + w) * x_.pixel};
    if (++across_ == x_.rows[1]) {
      across_ = 0;
      if (++down_ == x_.rows[0]) down_ = 0, ++image_;
    }
    return corner;
  }

 private:
  const Patches& x_;
  int64_t image_, down_, across_;
};

/// One tap of all rows, and the channels of it from `channel` on.
struct PatchTap {
  int64_t down = 0, across = 0;  ///< pixels from the corner
  int64_t channel = 0;
  int64_t offset = 0;  ///< elements from the corner's pixel, `channel` included

  PatchTap(const Patches& x, int64_t k)
      : down(k / x.channels / x.taps[1] * x.spread[0]),
        across(k / x.channels % x.taps[1] * x.spread[1]),
        channel(k % x.channels),
        offset((down * x.width + across) * x.pixel + channel) {}

  [[nodiscard]] bool is_inside(const Patches& x, const PatchCorner& corner) const {
    const auto h = static_cast<uint64_t>(corner.h + down), w = static_cast<uint64_t>(corner.w + across);
    return h < static_cast<uint64_t>(x.height) && w < static_cast<uint64_t>(x.width);
  }
};

/// Elements [k, k + count) of the row with that corner, each of `size` bytes, as they are stored.
void copy_taps(const Patches& x, const PatchCorner& corner, int64_t k, int64_t count, int64_t size,
               std::byte* to);

}  // namespace plimsoll::cpu
