// A plane is filled once, with borders and conversions, and stays in the second-level cache while its results
// are computed, a vector of channels at a time:
//
//   plane     [vectors, rows + border, columns + border, lanes]; the rows under the kernel lie in the
//             first-level cache
//   results   pixels j … j + 7 of a row: 8 sums in registers; for each tap a vector of the weight and
//             8 of the plane
#include "backends/cpu/kernels/conv/depthwise_band.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backends/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/conv/depthwise_band.cpp"
#include "hwy/foreach_target.h"
// Highway's order: after foreach_target.
#include "backends/cpu/kernels/gemm/gemm_simd-inl.h"
//
#include "backends/cpu/kernels/gemm/gemm_convert-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

inline constexpr int64_t kBlockChannels = kDepthwiseChannels, kParts = kBlockChannels / kLanes;
inline constexpr int kMostSums = 8;

// A pixel's channels as f32; zeros beyond them.
HWY_INLINE void load_pixel(const DepthwisePlane& p, const std::byte* from, float* to) {
  const bool full = p.channels == kBlockChannels;
  if (full && p.dtype == ir::DType::kF32 && p.precision == Precision::kF32) {
    for (int64_t c = 0; c < kBlockChannels; c += kLanes)
      store(load(reinterpret_cast<const float*>(from) + c), to + c);
  } else if (full && p.dtype == ir::DType::kBf16) {
    bf16_to_f32(reinterpret_cast<const uint16_t*>(from), to, kBlockChannels);
  } else {
    std::memset(to, 0, kBlockChannels * sizeof(float));
    convert(from, p.dtype, p.precision, to, p.channels);
  }
}

void fill_row(const DepthwisePlane& p, int64_t h, float* to) {
  const int64_t size = p.dtype == ir::DType::kF32 ? 4 : 2, part = p.rows * p.columns * kLanes;
  alignas(64) float block[kBlockChannels];
  for (int64_t c = 0; c < p.columns; ++c, to += kLanes) {
    const int64_t at = p.first[1] + c, w = at / p.spacing[1];
    const bool inside = at >= 0 && w < p.width && w * p.spacing[1] == at;
    if (inside) load_pixel(p, p.image + (h * p.width + w) * p.pixel * size, block);
    for (int64_t v = 0; v < kParts; ++v) store(inside ? load(block + v * kLanes) : zero(), to + v * part);
  }
}

void fill_plane(const DepthwisePlane& p) {
  const int64_t row = p.columns * kLanes, part = p.rows * row;
  for (int64_t r = 0; r < p.rows; ++r) {
    const int64_t at = p.first[0] + r, h = at / p.spacing[0];
    float* to = p.to + r * row;
    if (at >= 0 && h < p.height && h * p.spacing[0] == at) {
      fill_row(p, h, to);
      continue;
    }
    for (int64_t v = 0; v < kParts; ++v)
      std::memset(to + v * part, 0, static_cast<size_t>(row) * sizeof(float));
  }
}

// kN results side by side. With kTaps > 0 the kernel is so wide, and step and spread across are 1.
template <int kTaps, int kN>
void multiply_pixels(const DepthwiseBand& b, const float* plane, const float* weight, float* to) {
  Vec sums[kN];
#pragma GCC unroll 8
  for (int i = 0; i < kN; ++i) sums[i] = zero();
  const int64_t step = kTaps > 0 ? kLanes : b.step[1] * kLanes,
                spread = kTaps > 0 ? kLanes : b.spread[1] * kLanes, taps = kTaps > 0 ? kTaps : b.taps[1];
  for (int64_t kh = 0; kh < b.taps[0]; ++kh, weight += taps * kBlockChannels) {
    const float* x = plane + kh * b.spread[0] * b.plane_columns * kLanes;
#pragma GCC unroll 7
    for (int64_t kw = 0; kw < taps; ++kw) {
      const Vec w = load(weight + kw * kBlockChannels);
#pragma GCC unroll 8
      for (int i = 0; i < kN; ++i) multiply_add(load(x + kw * spread + i * step), w, sums[i]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kN; ++i) store(sums[i], to + i * kLanes);
}

// Sums of kN taps side by side over a row of results. With kUnit step and spread across are 1.
template <bool kUnit, int kN>
void sum_taps(const DepthwiseBand& b, const float* plane, const float* dy, float* to) {
  Vec sums[kN];
#pragma GCC unroll 8
  for (int t = 0; t < kN; ++t) sums[t] = zero();
  const int64_t step = kUnit ? kLanes : b.step[1] * kLanes, spread = kUnit ? kLanes : b.spread[1] * kLanes;
#pragma GCC unroll 4
  for (int64_t j = 0; j < b.columns; ++j, plane += step, dy += kLanes) {
    const Vec d = load(dy);
#pragma GCC unroll 8
    for (int t = 0; t < kN; ++t) multiply_add(load(plane + t * spread), d, sums[t]);
  }
#pragma GCC unroll 8
  for (int t = 0; t < kN; ++t) {
    float* at = to + t * kBlockChannels;
    store(add(load(at), sums[t]), at);
  }
}

using Several = void (*)(const DepthwiseBand&, const float*, const float*, float*);
using ByCount = std::array<Several, kMostSums>;
template <int kTaps, size_t... kN>
constexpr ByCount all_multiply(std::index_sequence<kN...>) {
  return {multiply_pixels<kTaps, static_cast<int>(kN) + 1>...};
}
template <bool kUnit, size_t... kN>
constexpr ByCount all_sum(std::index_sequence<kN...>) {
  return {sum_taps<kUnit, static_cast<int>(kN) + 1>...};
}
using Counts = std::make_index_sequence<kMostSums>;
inline constexpr ByCount kMultiply = all_multiply<0>(Counts()), kMultiply3 = all_multiply<3>(Counts()),
                         kMultiply5 = all_multiply<5>(Counts()), kMultiply7 = all_multiply<7>(Counts()),
                         kSum = all_sum<false>(Counts()), kSumUnit = all_sum<true>(Counts());

bool is_unit(const DepthwiseBand& b) { return b.step[1] == 1 && b.spread[1] == 1; }

const ByCount& multiply_of(const DepthwiseBand& b) {
  if (!is_unit(b)) return kMultiply;
  if (b.taps[1] == 7) return kMultiply7;
  if (b.taps[1] == 5) return kMultiply5;
  return b.taps[1] == 3 ? kMultiply3 : kMultiply;
}

const float* plane_row(const DepthwiseBand& b, int64_t part, int64_t row) {
  return b.plane + (part * b.plane_rows + row) * b.plane_columns * kLanes;
}

// Channels [v, v + lanes) of a row of results.
void store_row(const DepthwiseResults& r, int64_t v, int64_t columns, std::byte* to) {
  const int64_t size = r.dtype == ir::DType::kF32 ? 4 : 2, count = std::min<int64_t>(kLanes, r.channels - v);
  const Vec bias = r.bias != nullptr ? load(r.bias + v) : zero();
  to += v * size;
  for (int64_t j = 0; j < columns; ++j, to += r.pixel * size) {
    Vec x = load(r.row + j * kLanes);
    if (r.bias != nullptr) x = add(x, bias);
    if (count == kLanes && r.dtype == ir::DType::kF32) {
      store(x, reinterpret_cast<float*>(to));
      continue;
    }
    alignas(64) float one[kLanes];
    store(x, one);
    if (count == kLanes && r.dtype == ir::DType::kBf16)
      f32_to_bf16(one, reinterpret_cast<uint16_t*>(to), kLanes);
    else
      narrow(one, r.dtype, to, count);
  }
}

void multiply_band(const DepthwiseBand& b, const DepthwiseResults& r) {
  const int64_t row_bytes = b.columns * r.pixel * (r.dtype == ir::DType::kF32 ? 4 : 2);
  const ByCount& multiply = multiply_of(b);
  for (int64_t v = 0; v < r.channels; v += kLanes)
    for (int64_t i = 0; i < b.rows; ++i) {
      const float* plane = plane_row(b, v / kLanes, i * b.step[0]);
      for (int64_t j = 0; j < b.columns; j += kMostSums) {
        const int64_t count = std::min<int64_t>(kMostSums, b.columns - j);
        multiply[static_cast<size_t>(count - 1)](b, plane + j * b.step[1] * kLanes, r.weight + v,
                                                 r.row + j * kLanes);
      }
      store_row(r, v, b.columns, r.to + i * row_bytes);
    }
}

void sum_band(const DepthwiseBand& b, const float* dy, float* sums) {
  const ByCount& sum = is_unit(b) ? kSumUnit : kSum;
  for (int64_t v = 0; v < kParts; ++v)
    for (int64_t i = 0; i < b.rows; ++i, dy += b.columns * kLanes)
      for (int64_t kh = 0; kh < b.taps[0]; ++kh) {
        const float* plane = plane_row(b, v, i * b.step[0] + kh * b.spread[0]);
        for (int64_t kw = 0; kw < b.taps[1]; kw += kMostSums) {
          const int64_t count = std::min<int64_t>(kMostSums, b.taps[1] - kw);
          sum[static_cast<size_t>(count - 1)](b, plane + kw * b.spread[1] * kLanes, dy,
                                              sums + (kh * b.taps[1] + kw) * kBlockChannels + v * kLanes);
        }
      }
}

void convert_elements(const void* from, ir::DType dtype, Precision precision, float* to, int64_t count) {
  convert(from, dtype, precision, to, count);
}
void narrow_elements(const float* from, ir::DType dtype, void* to, int64_t count) {
  narrow(from, dtype, to, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(fill_plane);
HWY_EXPORT(multiply_band);
HWY_EXPORT(sum_band);
HWY_EXPORT(convert_elements);
HWY_EXPORT(narrow_elements);

void depthwise_fill(const DepthwisePlane& plane) { HWY_DYNAMIC_DISPATCH(fill_plane)(plane); }
void depthwise_multiply(const DepthwiseBand& band, const DepthwiseResults& results) {
  HWY_DYNAMIC_DISPATCH(multiply_band)(band, results);
}
void depthwise_sum(const DepthwiseBand& band, const float* dy, float* sums) {
  HWY_DYNAMIC_DISPATCH(sum_band)(band, dy, sums);
}
void depthwise_convert(const void* from, ir::DType dtype, Precision precision, float* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(convert_elements)(from, dtype, precision, to, count);
}
void depthwise_narrow(const float* from, ir::DType dtype, void* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_elements)(from, dtype, to, count);
}

}  // namespace plimsoll::cpu
#endif
