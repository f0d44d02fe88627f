// The loops of resampling, in vectors. Sums of bytes times weights are exact in 32 bits, so their order is
// free.
#include "images/resample.h"
#include "numerics/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "images/resample_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <cstring>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::images::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// What rounds to the nearest when the bits behind the point are cut off.
int32_t half(const AxisWeights& axis) { return axis.bits == 0 ? 0 : 1 << (axis.bits - 1); }

uint8_t clipped(int32_t sum, int bits) { return static_cast<uint8_t>(std::clamp(sum >> bits, 0, 255)); }

// Pixels [left, right) of a row.
void mirror_between(uint8_t* rgb, int64_t left, int64_t right) {
  for (--right; left < right; ++left, --right)
    for (int c = 0; c < 3; ++c) std::swap(rgb[3 * left + c], rgb[3 * right + c]);
}

#if HWY_TARGET == HWY_SCALAR

void row_kernel(const AxisWeights& axis, const uint8_t* in, uint8_t* out) {
  for (int64_t x = 0; x < static_cast<int64_t>(axis.windows.size()); ++x) {
    const Window& window = axis.windows[at(x)];
    const uint8_t* pixel = in + int64_t{3} * window.first;
    int32_t r = half(axis), g = r, b = r;
    for (int32_t tap = 0; tap < window.count; ++tap, pixel += 3) {
      const int32_t weight = axis.weight(x, tap);
      r += pixel[0] * weight;
      g += pixel[1] * weight;
      b += pixel[2] * weight;
    }
    *out++ = clipped(r, axis.bits);
    *out++ = clipped(g, axis.bits);
    *out++ = clipped(b, axis.bits);
  }
}

void mirror_kernel(uint8_t* rgb, int64_t width) { mirror_between(rgb, 0, width); }

#else

// Red, green, blue, and a lane that is not used.
using Pixel = hn::FixedTag<int32_t, 4>;
using Bytes16 = hn::Repartition<uint8_t, Pixel>;
using Bytes8 = hn::Half<Bytes16>;
constexpr uint8_t kNone = 0x80;  // in tables of bytes: zero

// `kTaps`, `kBits`: the axis's stride and bits where they are known, else 0.
template <int64_t kTaps, int kBits>
class RowResampler {
 public:
  RowResampler(const AxisWeights& axis, const uint8_t* in) : axis_(axis), in_(in) {}

  void to(uint8_t* out) const {
    // Every window of the same length, with weights of 0 at its end, as far as the row reaches: lengths that
    // change from one to the next cost more than the multiplications.
    const auto count = static_cast<int64_t>(axis_.windows.size());
    const int64_t end = axis_.end_input(), stride = kTaps != 0 ? kTaps : axis_.stride;
    int64_t i = 0;
    // Stores two bytes of the next pixel too.
    for (; i + 2 < count && axis_.windows[at(i + 1)].first + stride <= end; i += 2, out += 6)
      hn::StoreU(two_pixels(sum(i, stride), sum(i + 1, stride)), Bytes8(), out);
    for (; i < count; ++i, out += 3) {
      alignas(8) uint8_t rgb[8];
      const auto pixel = sum(i, axis_.windows[at(i)].count);
      hn::StoreU(two_pixels(pixel, pixel), Bytes8(), rgb);
      std::memcpy(out, rgb, 3);
    }
  }

 private:
  using Sum = hn::Vec<Pixel>;
  using Halves = hn::Repartition<int16_t, Pixel>;

  // Two halves of weights for each colour.
  static HWY_INLINE hn::Vec<Halves> for_colours(const int16_t* halves) {
    int32_t both = 0;
    std::memcpy(&both, halves, sizeof both);
    return hn::BitCast(Halves(), hn::Set(Pixel(), both));
  }

  // Halves of weights are multiplied two taps at once: one instruction does what takes two a tap with 32
  // bits.
  HWY_INLINE Sum sum(int64_t i, int64_t taps) const {
    alignas(16) static constexpr uint8_t kColours[16] = {0, kNone, 3, kNone, 1,     kNone, 4,     kNone,
                                                         2, kNone, 5, kNone, kNone, kNone, kNone, kNone};
    const Pixel d;
    const auto colours = hn::Load(Bytes16(), kColours);
    const uint8_t* pixel = in_ + int64_t{3} * axis_.windows[at(i)].first;
    const int16_t* halves = axis_.halves.data() + axis_.place_of(i, 0);
    Sum high = hn::Zero(d), low = high, more_high = high, more_low = high;
    for (int64_t tap = 0; tap < taps; tap += kTapsTogether, pixel += 3 * kTapsTogether, halves += 4) {
      const auto values = hn::BitCast(Halves(), hn::TableLookupBytesOr0(hn::LoadU(Bytes8(), pixel), colours));
      high = hn::ReorderWidenMulAccumulate(d, values, for_colours(halves), high, more_high);
      low = hn::ReorderWidenMulAccumulate(d, values, for_colours(halves + kTapsTogether), low, more_low);
    }
    const Sum sums =
        hn::Add(hn::ShiftLeft<AxisWeights::kLowBits>(hn::RearrangeToOddPlusEven(high, more_high)),
                hn::RearrangeToOddPlusEven(low, more_low));
    const Sum rounded = hn::Add(sums, hn::Set(d, half(axis_)));
    if constexpr (kBits != 0)
      return hn::ShiftRight<kBits>(rounded);
    else
      return hn::ShiftRightSame(rounded, axis_.bits);
  }

  // Clipped, in six bytes.
  static HWY_INLINE hn::Vec<Bytes8> two_pixels(Sum first, Sum second) {
    alignas(8) static constexpr uint8_t kTogether[8] = {0, 1, 2, 4, 5, 6, kNone, kNone};
    const auto both = hn::DemoteTo(Bytes8(), hn::ReorderDemote2To(Halves(), first, second));
    return hn::TableLookupBytesOr0(both, hn::Load(Bytes8(), kTogether));
  }

  const AxisWeights& axis_;
  const uint8_t* in_;
};

void row_kernel(const AxisWeights& axis, const uint8_t* in, uint8_t* out) {
  // Pillow's bilinear windows up to a reduction of 1 and of 2.
  if (axis.stride == 4 && axis.bits == kPillowBits) return RowResampler<4, kPillowBits>(axis, in).to(out);
  if (axis.stride == 6 && axis.bits == kPillowBits) return RowResampler<6, kPillowBits>(axis, in).to(out);
  RowResampler<0, 0>(axis, in).to(out);
}

// Five pixels of each end at once, with a byte beside them that stays as it is.
void mirror_kernel(uint8_t* rgb, int64_t width) {
  constexpr int64_t kPixels = 5, kApart = 11;  // further apart, no byte is in both vectors
  alignas(16) static constexpr uint8_t kToLeft[16] = {13, 14, 15, 10, 11, 12, 7, 8,
                                                      9,  4,  5,  6,  1,  2,  3, kNone};
  alignas(16) static constexpr uint8_t kToRight[16] = {kNone, 12, 13, 14, 9, 10, 11, 6,
                                                       7,     8,  3,  4,  5, 0,  1,  2};
  const Bytes16 d;
  const auto to_left = hn::Load(d, kToLeft), to_right = hn::Load(d, kToRight);
  const auto first15 = hn::FirstN(d, 15), first1 = hn::FirstN(d, 1);
  int64_t left = 0, right = width;
  for (; right - left >= kApart; left += kPixels, right -= kPixels) {
    uint8_t *begin = rgb + 3 * left, *end = rgb + 3 * right - 16;
    const auto from_left = hn::LoadU(d, begin), from_right = hn::LoadU(d, end);
    hn::StoreU(hn::IfThenElse(first15, hn::TableLookupBytes(from_right, to_left), from_left), d, begin);
    hn::StoreU(hn::IfThenElse(first1, from_right, hn::TableLookupBytes(from_left, to_right)), d, end);
  }
  mirror_between(rgb, left, right);
}

#endif

void column_kernel(const AxisWeights& axis, int64_t i, const uint8_t* rows, int64_t bytes, uint8_t* out) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int32_t count = axis.windows[at(i)].count;
  int64_t x = 0;
  // Four vectors of sums stay in registers.
  for (; x + 4 * lanes <= bytes; x += 4 * lanes) {
    auto s0 = hn::Set(d, half(axis)), s1 = s0, s2 = s0, s3 = s0;
    const uint8_t* row = rows + x;
    for (int32_t tap = 0; tap < count; ++tap, row += bytes) {
      const auto weight = hn::Set(d, axis.weight(i, tap));
      s0 = hn::Add(s0, hn::Mul(hn::PromoteTo(d, hn::LoadU(d8, row)), weight));
      s1 = hn::Add(s1, hn::Mul(hn::PromoteTo(d, hn::LoadU(d8, row + lanes)), weight));
      s2 = hn::Add(s2, hn::Mul(hn::PromoteTo(d, hn::LoadU(d8, row + 2 * lanes)), weight));
      s3 = hn::Add(s3, hn::Mul(hn::PromoteTo(d, hn::LoadU(d8, row + 3 * lanes)), weight));
    }
    hn::StoreU(hn::DemoteTo(d8, hn::ShiftRightSame(s0, axis.bits)), d8, out + x);
    hn::StoreU(hn::DemoteTo(d8, hn::ShiftRightSame(s1, axis.bits)), d8, out + x + lanes);
    hn::StoreU(hn::DemoteTo(d8, hn::ShiftRightSame(s2, axis.bits)), d8, out + x + 2 * lanes);
    hn::StoreU(hn::DemoteTo(d8, hn::ShiftRightSame(s3, axis.bits)), d8, out + x + 3 * lanes);
  }
  for (; x + lanes <= bytes; x += lanes) {
    auto sum = hn::Set(d, half(axis));
    const uint8_t* row = rows + x;
    for (int32_t tap = 0; tap < count; ++tap, row += bytes)
      sum = hn::Add(sum, hn::Mul(hn::PromoteTo(d, hn::LoadU(d8, row)), hn::Set(d, axis.weight(i, tap))));
    hn::StoreU(hn::DemoteTo(d8, hn::ShiftRightSame(sum, axis.bits)), d8, out + x);
  }
  for (; x < bytes; ++x) {
    int32_t sum = half(axis);
    for (int32_t tap = 0; tap < count; ++tap) sum += rows[tap * bytes + x] * axis.weight(i, tap);
    out[x] = clipped(sum, axis.bits);
  }
}

}  // namespace
}  // namespace plimsoll::images::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::images {
namespace {

HWY_EXPORT(row_kernel);
HWY_EXPORT(column_kernel);
HWY_EXPORT(mirror_kernel);

}  // namespace

void resample_row(const AxisWeights& axis, const uint8_t* in, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(row_kernel)(axis, in, out);
}

void resample_column(const AxisWeights& axis, int64_t i, const uint8_t* rows, int64_t bytes, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(column_kernel)(axis, i, rows, bytes, out);
}

void mirror_row(uint8_t* rgb, int64_t width) { HWY_DYNAMIC_DISPATCH(mirror_kernel)(rgb, width); }

}  // namespace plimsoll::images
#endif
