// Rounding in blocks. All of a matrix is one call into the instruction set at hand, because blocks are short.
// It goes by panels: a block's rows, some columns. First the largest magnitude of each block of the panel,
// then their scales, side by side, then the panel's rows to codes while the cache still holds them.
#include "numerics/blocks.h"

#include "numerics/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/blocks.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "hwy/cache_control.h"
#include "numerics/block_panels-inl.h"
#include "numerics/block_runs-inl.h"
#include "numerics/block_scales-inl.h"
#include "numerics/convert-inl.h"
#include "numerics/convert.h"
#include "numerics/minifloat-inl.h"
#include "numerics/other_codes-inl.h"
#include "numerics/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
/// From this size on matrices are read ahead, and results written past the caches.
constexpr int64_t kLargeBytes = int64_t{8} << 20;

float largest_of(const float* x, int64_t count) {
  const auto n = static_cast<size_t>(count);
  const uint32_t bits = largest_bits(x, n, count >= kLargeBytes / 4);
  return std::bit_cast<float>(bits <= 0x7F800000U ? bits : largest_number_bits(x, n));
}

/// A panel's numbers in memory, and its codes.
struct Rows {
  const float* x;
  size_t stride;
  std::byte* codes;
  size_t row_bytes;
  Ahead ahead;
};

/// Copies past the caches; `n` bytes.
HWY_INLINE void stream_bytes(const std::byte* from, size_t n, std::byte* to) {
  constexpr size_t kAlign = kLanes * sizeof(uint32_t);
  const U32 d;
  const size_t head = std::min(n, (kAlign - reinterpret_cast<uintptr_t>(to) % kAlign) % kAlign);
  std::memcpy(to, from, head);
  size_t i = head;
  for (; i + kAlign <= n; i += kAlign) {
    HWY_ALIGN uint32_t part[kLanes];
    std::memcpy(part, from + i, kAlign);
    hn::Stream(hn::Load(d, part), d, reinterpret_cast<uint32_t*>(to + i));
  }
  std::memcpy(to + i, from + i, n - i);
}

/// What S clips, counted where a block's largest number might be.
template <class S>
HWY_INLINE int64_t clipped_of(const Panel& p, const Rows& rows) {
  const F32 d;
  // From half way to the next code on.
  const V tie = hn::Set(d, std::bit_cast<float>(cap_bits<S>(S::kMax) + (1U << (S::kShift - 1))));
  auto beyond = hn::Zero(d);
  for (size_t b = 0; b < p.blocks; b += kLanes)  // beyond the last block amax is 0
    beyond = hn::Max(beyond, hn::Mul(hn::Load(d, p.amax + b), hn::Load(d, p.multiplier + b)));
  if (HWY_LIKELY(hn::AllFalse(d, hn::Ge(beyond, tie)))) return 0;
  int64_t clipped = 0;
  for (size_t b = 0; b < p.blocks; ++b) {
    if (S::kExponentBits == 2 && p.code[b] == 0) continue;  // under a scale that vanished numbers become 0
    for (size_t r = 0; r < p.rows; ++r)
      clipped +=
          count_clipped<S>(rows.x + r * rows.stride + b * p.width, p.cols_of(b), {&p.multiplier[b], 63});
  }
  return clipped;
}

/// Codes of S, and how many were clipped.
template <class S, class Stored>
HWY_INLINE int64_t quantize_scaled(const Panel& p, const Rows& rows) {
  for (size_t r = 0; r < p.rows; ++r) {
    const float* x = rows.x + r * rows.stride;
    std::byte* codes = rows.codes + r * rows.row_bytes;
    if (rows.ahead.far != 0 && is_aligned(codes))
      encode_scaled<S, Stored, true>(x, p.cols, p.multipliers(), rows.ahead, codes);
    else
      encode_scaled<S, Stored, false>(x, p.cols, p.multipliers(), rows.ahead, codes);
  }
  return clipped_of<S>(p, rows);
}

HWY_INLINE void quantize_nf4(const Panel& p, const Rows& rows, uint8_t* scales) {
  HWY_ALIGN float trees[kPanelCols / 64 * 16];
  for (size_t b = 0; b < p.blocks; ++b) {
    put(scales, b, p.amax[b]);
    nf4_tree(p.amax[b], trees + 16 * b);
  }
  if (rows.ahead.far != 0 && is_aligned(rows.codes))
    encode_nf4<true>(rows.x, p.cols, trees, p.shift, rows.ahead, rows.codes);
  else
    encode_nf4<false>(rows.x, p.cols, trees, p.shift, rows.ahead, rows.codes);
}

HWY_INLINE void quantize_int8(const Panel& p, const Rows& rows, uint8_t* scales) {
  HWY_ALIGN std::byte buffer[kPanelCols];  // from where codes go past the caches, aligned or not
  const bool stream = rows.ahead.far != 0;
  std::byte* codes = stream ? buffer : rows.codes;
  for (size_t b = 0; b < p.blocks; ++b) {
    const size_t at = b * p.width, n = p.cols_of(b);
    put(scales, b, p.amax[b]);
    if (HWY_LIKELY(!p.has_nan)) {
      encode_int8(rows.x + at, n, p.amax[b], rows.ahead, codes + at);
    } else {
      for (size_t i = 0; i < n; ++i)
        codes[at + i] = static_cast<std::byte>(int8_exact(rows.x[at + i], p.amax[b]));
    }
  }
  if (stream) stream_bytes(buffer, p.cols, rows.codes);
}

/// Codes and scales of a panel, whose largest magnitudes are known; `scales` begins with its first.
HWY_INLINE int64_t quantize_panel(Scheme scheme, const TensorScale& tensor, Panel& p, const Rows& rows,
                                  uint8_t* scales) {
  switch (scheme) {
    case Scheme::kE4m3:
      p.multiplier[0] = tensor.scale;
      return quantize_scaled<MiniE4m3, uint8_t>(p, rows);
    case Scheme::kE5m2:
      p.multiplier[0] = tensor.scale;
      return quantize_scaled<MiniE5m2, uint8_t>(p, rows);
    case Scheme::kFp8Block1x128:
    case Scheme::kFp8Block128x128:
      for (size_t b = 0; b < p.blocks; ++b) {
        p.multiplier[b] = power_of_two_scale(p.amax[b]);
        put(scales, b, 1.0F / p.multiplier[b]);
      }
      return quantize_scaled<MiniE4m3, uint8_t>(p, rows);
    case Scheme::kMxfp8:
      mx_scales(p.amax, p.blocks, p.code, p.multiplier);
      put_bytes(p.code, p.blocks, scales);
      return quantize_scaled<MiniE4m3, uint8_t>(p, rows);
    case Scheme::kNvfp4:
    case Scheme::kNvfp4Block16x16:
      nv_scales(p.amax, p.blocks, tensor, p.code, p.multiplier);
      put_bytes(p.code, p.blocks, scales);
      return quantize_scaled<MiniE2m1, Nibble>(p, rows);
    case Scheme::kNf4:
      quantize_nf4(p, rows, scales);
      return 0;
    default:
      quantize_int8(p, rows, scales);
      return 0;
  }
}

int64_t quantize_matrix(Scheme scheme, const TensorScale& tensor, const float* x, int64_t rows, int64_t cols,
                        uint8_t* codes, uint8_t* scales) {
  const int64_t row_bytes = code_row_bytes(scheme, cols), bits = info(info(scheme).codes).stored_bits;
  const int64_t each = scale_bytes(scheme);
  const bool ahead = rows * cols * 4 >= kLargeBytes;
  int64_t clipped = 0;
  for_panels(scheme, rows, cols, [&](Panel& p, int64_t row, int64_t col, int64_t scale) HWY_ATTR {
    // Numbers of one row follow each other; of several, the next panel is beside this one or below.
    const bool is_last = col + kPanelCols >= cols;
    const int64_t next = is_last ? static_cast<int64_t>(p.rows) * cols - col : kPanelCols;
    const bool is_row = p.rows == 1;
    Ahead distance;
    if (ahead) distance.far = is_row ? kFarBytes : static_cast<size_t>(next) * sizeof(float);
    if (ahead && is_row) distance.near = kPanelCols * sizeof(float);
    const Rows part{x + row * cols + col, static_cast<size_t>(cols),
                    reinterpret_cast<std::byte*>(codes) + row * row_bytes + col * bits / 8,
                    static_cast<size_t>(row_bytes), distance};
    measure(p, part.x, part.stride, ahead && !is_row);
    clipped += quantize_panel(scheme, tensor, p, part, scales + scale * each);
  });
  if (ahead) hwy::FlushStream();
  return clipped;
}

// ---- back

/// What the codes of each block of a panel are multiplied with.
HWY_INLINE void load_factors(Scheme scheme, const TensorScale& tensor, Panel& p, const uint8_t* scales) {
  switch (scheme) {
    case Scheme::kE4m3:
    case Scheme::kE5m2:
      p.multiplier[0] = tensor.decode;
      return;
    case Scheme::kMxfp8:
      for (size_t b = 0; b < p.blocks; ++b) p.multiplier[b] = mx_value(scales[b]);
      return;
    case Scheme::kNvfp4:
    case Scheme::kNvfp4Block16x16:
      for (size_t b = 0; b < p.blocks; ++b) p.code[b] = scales[b];
      return nv_factors(p.code, p.blocks, tensor, p.multiplier);
    default:
      for (size_t b = 0; b < p.blocks; ++b) p.multiplier[b] = get<float>(scales, b);
  }
}

/// A row of a panel.
template <bool kStream>
HWY_INLINE void dequantize_row(Scheme scheme, const Panel& p, const std::byte* codes, float* x) {
  const F32 d;
  switch (scheme) {
    case Scheme::kE5m2:
      return decode_scaled<uint8_t, kStream>(
          codes, p.cols, p.multipliers(), [=](VU32 c) HWY_ATTR { return from_code<MiniE5m2>(d, c); }, x);
    case Scheme::kNvfp4:
    case Scheme::kNvfp4Block16x16:
      return decode_scaled<Nibble, kStream>(codes, p.cols, p.multipliers(), Sixteen(kE2m1Values), x);
    case Scheme::kNf4:
      return decode_scaled<Nibble, kStream>(codes, p.cols, p.multipliers(), Sixteen(kNf4Values), x);
    case Scheme::kInt8Block256:
      for (size_t b = 0; b < p.blocks; ++b)
        decode_int8<kStream>(codes + b * p.width, p.cols_of(b), p.multiplier[b], x + b * p.width);
      return;
    default:
      return decode_scaled<uint8_t, kStream>(
          codes, p.cols, p.multipliers(), [=](VU32 c) HWY_ATTR { return from_code<MiniE4m3>(d, c); }, x);
  }
}

void dequantize_matrix(Scheme scheme, const TensorScale& tensor, const uint8_t* codes, const uint8_t* scales,
                       int64_t rows, int64_t cols, float* x) {
  const int64_t row_bytes = code_row_bytes(scheme, cols), bits = info(info(scheme).codes).stored_bits;
  const int64_t each = scale_bytes(scheme);
  const bool is_large = rows * cols * 4 >= kLargeBytes;
  HWY_ALIGN float row_buffer[kPanelCols];
  for_panels(scheme, rows, cols, [&](Panel& p, int64_t row, int64_t col, int64_t scale) HWY_ATTR {
    load_factors(scheme, tensor, p, scales + scale * each);
    for (size_t r = 0; r < p.rows; ++r) {
      const int64_t at = row + static_cast<int64_t>(r);
      const auto* from = reinterpret_cast<const std::byte*>(codes) + at * row_bytes + col * bits / 8;
      float* to = x + at * cols + col;
      if (!is_large) {
        dequantize_row<false>(scheme, p, from, to);
      } else if (is_aligned(to)) {
        dequantize_row<true>(scheme, p, from, to);
      } else {  // a vector may not span two blocks, so it cannot be moved to where it would be aligned
        dequantize_row<false>(scheme, p, from, row_buffer);
        stream_bytes(reinterpret_cast<const std::byte*>(row_buffer), p.cols * sizeof(float),
                     reinterpret_cast<std::byte*>(to));
      }
    }
  });
  if (is_large) hwy::FlushStream();
}

/// Numbers that are finite in `x` and not in the 16 bits or the tf32 that came of it.
int64_t count_overflow(const float* x, const float* rounded, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += std::isinf(rounded[i]) && std::isfinite(x[i]) ? 1 : 0;
  return count;
}

}  // namespace
}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::numerics {
namespace {

HWY_EXPORT(largest_of);
HWY_EXPORT(quantize_matrix);
HWY_EXPORT(dequantize_matrix);
HWY_EXPORT(count_overflow);

void check_sizes(Scheme scheme, int64_t rows, int64_t cols, size_t numbers, size_t codes, size_t scales) {
  PLIMSOLL_CHECK(static_cast<int64_t>(numbers) == rows * cols, "blocks: numbers");
  PLIMSOLL_CHECK(static_cast<int64_t>(codes) == rows * code_row_bytes(scheme, cols), "blocks: codes");
  PLIMSOLL_CHECK(static_cast<int64_t>(scales) ==
                     scale_rows(scheme, rows) * scale_cols(scheme, cols) * scale_bytes(scheme),
                 "blocks: scales");
}

bool is_wide(Scheme scheme) { return info(info(scheme).codes).stored_bits >= 16; }

int64_t encode_wide(Format format, std::span<const float> x, std::span<std::byte> codes) {
  encode(format, x, codes);
  std::array<float, 1024> rounded;
  int64_t clipped = 0;
  for (size_t i = 0; i < x.size(); i += rounded.size()) {
    const size_t n = std::min(rounded.size(), x.size() - i);
    const auto bytes = [&](size_t at) {
      return static_cast<size_t>(encoded_bytes(format, static_cast<int64_t>(at)));
    };
    decode(format, codes.subspan(bytes(i), bytes(n)), std::span(rounded).first(n));
    clipped += HWY_DYNAMIC_DISPATCH(count_overflow)(x.data() + i, rounded.data(), static_cast<int64_t>(n));
  }
  return clipped;
}

}  // namespace

float largest_magnitude(std::span<const float> x) {
  return HWY_DYNAMIC_DISPATCH(largest_of)(x.data(), static_cast<int64_t>(x.size()));
}

int64_t quantize(Scheme scheme, const TensorScale& tensor, std::span<const float> x, int64_t rows,
                 int64_t cols, std::span<std::byte> codes, std::span<std::byte> scales) {
  check_sizes(scheme, rows, cols, x.size(), codes.size(), scales.size());
  if (is_wide(scheme)) return encode_wide(info(scheme).codes, x, codes);
  if (info(scheme).block_rows == 0) cols *= std::exchange(rows, 1);  // one scale: rows do not matter
  return HWY_DYNAMIC_DISPATCH(quantize_matrix)(scheme, tensor, x.data(), rows, cols,
                                               reinterpret_cast<uint8_t*>(codes.data()),
                                               reinterpret_cast<uint8_t*>(scales.data()));
}

void dequantize(Scheme scheme, const TensorScale& tensor, std::span<const std::byte> codes,
                std::span<const std::byte> scales, int64_t rows, int64_t cols, std::span<float> x) {
  check_sizes(scheme, rows, cols, x.size(), codes.size(), scales.size());
  if (is_wide(scheme)) return decode(info(scheme).codes, codes, x);
  if (info(scheme).block_rows == 0) cols *= std::exchange(rows, 1);
  HWY_DYNAMIC_DISPATCH(dequantize_matrix)
  (scheme, tensor, reinterpret_cast<const uint8_t*>(codes.data()),
   reinterpret_cast<const uint8_t*>(scales.data()), rows, cols, x.data());
}

}  // namespace plimsoll::numerics
#endif
