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

HWY_BEFORE_NAMESPACE();
namespace plimsoll::images::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// What rounds to the nearest when the bits behind the point are cut off.
int32_t half(const AxisWeights& axis) { return axis.bits == 0 ? 0 : 1 << (axis.bits - 1); }

uint8_t clipped(int32_t sum, int bits) { return static_cast<uint8_t>(std::clamp(sum >> bits, 0, 255)); }

#if HWY_TARGET == HWY_SCALAR

void row_kernel(const AxisWeights& axis, const uint8_t* in, uint8_t* out) {
  const int32_t* weights = axis.weights.data();
  for (const Window& window : axis.windows) {
    const uint8_t* pixel = in + int64_t{3} * window.first;
    int32_t r = half(axis), g = r, b = r;
    for (int32_t i = 0; i < window.count; ++i, pixel += 3) {
      r += pixel[0] * weights[i];
      g += pixel[1] * weights[i];
      b += pixel[2] * weights[i];
    }
    *out++ = clipped(r, axis.bits);
    *out++ = clipped(g, axis.bits);
    *out++ = clipped(b, axis.bits);
    weights += axis.stride;
  }
}

#else

// Two pixels at once, each with red, green, blue and a lane that is not used.
using Pixels = hn::FixedTag<int32_t, 4 * kTapsTogether>;

void row_kernel(const AxisWeights& axis, const uint8_t* in, uint8_t* out) {
  const Pixels d;
  const hn::Rebind<uint8_t, Pixels> bytes;
  const hn::FixedTag<int32_t, 4> d4;
  const hn::Rebind<uint8_t, decltype(d4)> bytes4;
  alignas(16) static constexpr uint8_t kSpread[16] = {0,    1,    2,    0x80, 3,    4,    5,    0x80,
                                                      0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
  alignas(32) static constexpr uint8_t kRepeat[32] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,
                                                      4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7};
  const auto spread = hn::Load(bytes, kSpread);
  const hn::Repartition<int64_t, Pixels> pairs;
  const auto repeat = hn::BitCast(d, hn::Load(hn::Repartition<uint8_t, Pixels>(), kRepeat));
  const auto rounding = hn::Set(d4, half(axis));
  const auto pixel_of = [&](const Window& window, const int32_t* weights, int64_t taps) HWY_ATTR {
    const uint8_t* pixel = in + int64_t{3} * window.first;
    auto sums = hn::Zero(d);
    for (int64_t tap = 0; tap < taps; tap += kTapsTogether, pixel += 3 * kTapsTogether) {
      const auto values = hn::PromoteTo(d, hn::TableLookupBytesOr0(hn::LoadU(bytes, pixel), spread));
      int64_t pair = 0;
      std::memcpy(&pair, weights + tap, sizeof pair);
      const auto weight = hn::TableLookupBytes(hn::BitCast(d, hn::Set(pairs, pair)), repeat);
      sums = hn::Add(sums, hn::Mul(values, weight));
    }
    const auto both = hn::Add(hn::LowerHalf(d4, sums), hn::UpperHalf(d4, sums));
    return hn::DemoteTo(bytes4, hn::ShiftRightSame(hn::Add(both, rounding), axis.bits));
  };
  // Every window of the same length, with weights of 0 at its end, as far as the row reaches: lengths that
  // change from one to the next cost more than the multiplications.
  const auto count = static_cast<int64_t>(axis.windows.size());
  const int64_t end = axis.end_input();
  const int32_t* weights = axis.weights.data();
  int64_t i = 0;
  for (; i + 1 < count && axis.windows[at(i)].first + axis.stride <= end;
       ++i, out += 3, weights += axis.stride)
    hn::StoreU(pixel_of(axis.windows[at(i)], weights, axis.stride), bytes4, out);
  for (; i < count; ++i, out += 3, weights += axis.stride) {
    alignas(16) uint8_t rgb[16];
    hn::StoreU(pixel_of(axis.windows[at(i)], weights, axis.windows[at(i)].count), bytes4, rgb);
    std::memcpy(out, rgb, 3);
  }
}

#endif

void column_kernel(const AxisWeights& axis, int64_t i, const uint8_t* rows, int64_t bytes, uint8_t* out) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int32_t* weights = axis.weights.data() + i * axis.stride;
  const int32_t count = axis.windows[at(i)].count;
  int64_t x = 0;
  // Four vectors of sums stay in registers.
  for (; x + 4 * lanes <= bytes; x += 4 * lanes) {
    auto s0 = hn::Set(d, half(axis)), s1 = s0, s2 = s0, s3 = s0;
    const uint8_t* row = rows + x;
    for (int32_t tap = 0; tap < count; ++tap, row += bytes) {
      const auto weight = hn::Set(d, weights[tap]);
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
  for (; x < bytes; ++x) {
    int32_t sum = half(axis);
    for (int32_t tap = 0; tap < count; ++tap) sum += rows[tap * bytes + x] * weights[tap];
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

}  // namespace

void resample_row(const AxisWeights& axis, const uint8_t* in, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(row_kernel)(axis, in, out);
}

void resample_column(const AxisWeights& axis, int64_t i, const uint8_t* rows, int64_t bytes, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(column_kernel)(axis, i, rows, bytes, out);
}

}  // namespace plimsoll::images
#endif
