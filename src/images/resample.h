// Resampling along one axis, bit for bit Pillow's: each output is a weighted sum of a window of inputs, with
// weights in fixed point. Source of the method: Pillow's ImagingResample (a separable filter whose support
// grows with the reduction, which is antialiasing).
#pragma once

#include <cstdint>
#include <span>

#include "images/arena.h"
#include "images/processor.h"

namespace plimsoll::images {

/// The outputs [first_output, first_output + count) of an axis of `input` elements that is resized to
/// `output`.
struct AxisRange {
  int64_t input = 1;
  int64_t output = 1;
  int64_t first_output = 0;
  int64_t count = 1;
};

/// The window of inputs that an output is made of.
struct Window {
  int32_t first = 0;
  int32_t count = 0;
};

/// Windows are computed in steps of so many inputs, the taps; weights behind a window's end are 0.
inline constexpr int32_t kTapsTogether = 2;
/// Bytes that can be read behind the last pixel of a row that resample_row takes.
inline constexpr int64_t kRowSlack = 8;

/// Bits behind the point of Pillow's weights.
inline constexpr int kPillowBits = 22;

/// Weights of every output of an axis: `stride` for each window, with `bits` behind the point. They lie in
/// halves of 16 bits, as pairs of them are multiplied: the high halves of two taps, then their low halves.
struct AxisWeights {
  static constexpr int kLowBits = 15;
  std::span<const Window> windows;
  std::span<const int16_t> halves;
  int64_t stride = 0;
  int bits = 0;

  /// Where weight `tap` of window i has its high half; its low half lies kTapsTogether behind.
  [[nodiscard]] size_t place_of(int64_t i, int64_t tap) const {
    return static_cast<size_t>(2 * (i * stride + tap / kTapsTogether * kTapsTogether) + tap % kTapsTogether);
  }
  [[nodiscard]] int32_t weight(int64_t i, int64_t tap) const {
    const int16_t* high = halves.data() + place_of(i, tap);
    return high[0] * (1 << kLowBits) + high[kTapsTogether];
  }

  /// The inputs that any of the outputs needs.
  [[nodiscard]] int64_t first_input() const { return windows.front().first; }
  [[nodiscard]] int64_t end_input() const { return windows.back().first + windows.back().count; }
};

/// What axis_weights takes of an arena at most.
int64_t axis_bytes(const AxisRange& range, Interpolation interpolation);

/// The weights. Pillow's have 22 bits behind the point: 32 without 8 of a pixel and two for filters with
/// negative lobes. torch's have as many as bring the largest below 2^15. kNearest has one input an output;
/// `backend` decides where between two of them it rounds.
AxisWeights axis_weights(const AxisRange& range, Interpolation interpolation, Backend backend, Arena& arena);

/// One row of RGB to the axis's outputs: `in` has the axis's inputs, 3 bytes each, and kRowSlack bytes
/// behind them.
void resample_row(const AxisWeights& axis, const uint8_t* in, uint8_t* out);

/// Output `i` of a picture's columns: a row of `bytes` bytes. `rows` is the first row of its window, the
/// others stand behind it.
void resample_column(const AxisWeights& axis, int64_t i, const uint8_t* rows, int64_t bytes, uint8_t* out);

/// The pixels of a row in the opposite order.
void mirror_row(uint8_t* rgb, int64_t width);

}  // namespace plimsoll::images
