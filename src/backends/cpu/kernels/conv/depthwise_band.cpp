// A plane of a block of channels stays in the second-level cache while its results are computed, several
// neighbours at once in registers:
//
//   plane  [rows + border, columns + border, 32 channels]   filled once: borders, conversions
//   result pixels j … j + 7 of a row: 8 sums, for each tap one vector of the weight and 8 of the plane
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

inline constexpr int64_t kBlockChannels = kDepthwiseChannels;
inline constexpr int kMostSums = 8;

void fill_row(const DepthwisePlane& p, int64_t h, float* to) {
  const int64_t size = p.dtype == ir::DType::kF32 ? 4 : 2;
  for (int64_t c = 0; c < p.columns; ++c, to += kBlockChannels) {
    const int64_t at = p.first[1] + c, w = at / p.spacing[1];
    const bool inside = at >= 0 && w < p.width && w * p.spacing[1] == at;
    if (!inside || p.channels < kBlockChannels) std::memset(to, 0, kBlockChannels * sizeof(float));
    if (inside) convert(p.image + (h * p.width + w) * p.pixel * size, p.dtype, p.precision, to, p.channels);
  }
}

void fill_plane(const DepthwisePlane& p) {
  float* to = p.to;
  for (int64_t r = 0; r < p.rows; ++r, to += p.columns * kBlockChannels) {
    const int64_t at = p.first[0] + r, h = at / p.spacing[0];
    if (at >= 0 && h < p.height && h * p.spacing[0] == at)
      fill_row(p, h, to);
    else
      std::memset(to, 0, static_cast<size_t>(p.columns * kBlockChannels) * sizeof(float));
  }
}

// kN results side by side, a vector of channels.
template <int kN>
void multiply_pixels(const DepthwiseBand& b, const float* plane, const float* weight, float* to) {
  Vec sums[kN];
#pragma GCC unroll 8
  for (int i = 0; i < kN; ++i) sums[i] = zero();
  const int64_t step = b.step[1] * kBlockChannels, spread = b.spread[1] * kBlockChannels;
  for (int64_t kh = 0; kh < b.taps[0]; ++kh) {
    const float* x = plane + kh * b.spread[0] * b.plane_columns * kBlockChannels;
    for (int64_t kw = 0; kw < b.taps[1]; ++kw, x += spread, weight += kBlockChannels) {
      const Vec w = load(weight);
#pragma GCC unroll 8
      for (int i = 0; i < kN; ++i) multiply_add(load(x + i * step), w, sums[i]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kN; ++i) store(sums[i], to + i * kBlockChannels);
}

// Sums over a row of kN taps side by side, a vector of channels.
template <int kN>
void sum_taps(const DepthwiseBand& b, const float* plane, const float* dy, float* to) {
  Vec sums[kN];
#pragma GCC unroll 8
  for (int t = 0; t < kN; ++t) sums[t] = zero();
  const int64_t step = b.step[1] * kBlockChannels, spread = b.spread[1] * kBlockChannels;
  for (int64_t j = 0; j < b.columns; ++j, plane += step, dy += kBlockChannels) {
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
template <size_t... kN>
constexpr std::array<Several, kMostSums> all_multiply(std::index_sequence<kN...>) {
  return {multiply_pixels<static_cast<int>(kN) + 1>...};
}
template <size_t... kN>
constexpr std::array<Several, kMostSums> all_sum(std::index_sequence<kN...>) {
  return {sum_taps<static_cast<int>(kN) + 1>...};
}
inline constexpr auto kMultiply = all_multiply(std::make_index_sequence<kMostSums>());
inline constexpr auto kSum = all_sum(std::make_index_sequence<kMostSums>());

const float* plane_row(const DepthwiseBand& b, int64_t row) {
  return b.plane + row * b.plane_columns * kBlockChannels;
}

void store_row(const DepthwiseResults& r, int64_t columns, std::byte* to) {
  const int64_t bytes = r.pixel * (r.dtype == ir::DType::kF32 ? 4 : 2);
  for (int64_t j = 0; j < columns; ++j, to += bytes) {
    float* x = r.row + j * kBlockChannels;
    if (r.bias != nullptr)
      for (int64_t c = 0; c < kBlockChannels; ++c) x[c] += r.bias[c];
    narrow(x, r.dtype, to, r.channels);
  }
}

void multiply_band(const DepthwiseBand& b, const DepthwiseResults& r) {
  const int64_t row_bytes = b.columns * r.pixel * (r.dtype == ir::DType::kF32 ? 4 : 2);
  for (int64_t i = 0; i < b.rows; ++i) {
    const float* plane = plane_row(b, i * b.step[0]);
    for (int64_t v = 0; v < kBlockChannels; v += kLanes)
      for (int64_t j = 0; j < b.columns; j += kMostSums) {
        const int64_t count = std::min<int64_t>(kMostSums, b.columns - j);
        kMultiply[static_cast<size_t>(count - 1)](b, plane + j * b.step[1] * kBlockChannels + v, r.weight + v,
                                                  r.row + j * kBlockChannels + v);
      }
    store_row(r, b.columns, r.to + i * row_bytes);
  }
}

void sum_band(const DepthwiseBand& b, const float* dy, float* sums) {
  for (int64_t i = 0; i < b.rows; ++i, dy += b.columns * kBlockChannels)
    for (int64_t kh = 0; kh < b.taps[0]; ++kh) {
      const float* plane = plane_row(b, i * b.step[0] + kh * b.spread[0]);
      for (int64_t kw = 0; kw < b.taps[1]; kw += kMostSums) {
        const int64_t count = std::min<int64_t>(kMostSums, b.taps[1] - kw);
        for (int64_t v = 0; v < kBlockChannels; v += kLanes)
          kSum[static_cast<size_t>(count - 1)](b, plane + kw * b.spread[1] * kBlockChannels + v, dy + v,
                                               sums + (kh * b.taps[1] + kw) * kBlockChannels + v);
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
