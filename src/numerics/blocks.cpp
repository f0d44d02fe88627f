// Rounding in blocks. All of a matrix is one call into the instruction set at hand, because blocks are short;
// each scheme says how a block's scale comes about and how a run of numbers becomes codes.
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
#include "numerics/convert-inl.h"
#include "numerics/convert.h"
#include "numerics/minifloat-inl.h"
#include "numerics/other_codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<uint32_t>;
using V = hn::Vec<F32>;
using VU32 = hn::Vec<U32>;
constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kLongestNibbleBlock = 64;
constexpr float kMaxF32 = std::numeric_limits<float>::max();

HWY_INLINE V load_n(const float* x, size_t n) {
  if (n >= kLanes) return hn::LoadU(F32(), x);
  HWY_ALIGN float rest[kLanes] = {};
  std::memcpy(rest, x, n * sizeof(float));
  return hn::Load(F32(), rest);
}

HWY_INLINE void store_n(V v, float* x, size_t n) {
  if (n >= kLanes) return hn::StoreU(v, F32(), x);
  HWY_ALIGN float rest[kLanes];
  hn::Store(v, F32(), rest);
  std::memcpy(x, rest, n * sizeof(float));
}

/// f(v, i) gives the codes of the lanes from i on; zeros stand beyond the end.
template <class Stored, class F>
HWY_INLINE void to_codes(const float* x, size_t n, Stored* codes, F f) {
  const hn::Rebind<Stored, F32> d;
  const hn::RebindToSigned<F32> di;
  for (size_t i = 0; i < n; i += kLanes) {
    const auto stored = hn::DemoteTo(d, hn::BitCast(di, f(load_n(x + i, n - i), i)));
    if (n - i >= kLanes) {
      hn::StoreU(stored, d, codes + i);
    } else {
      HWY_ALIGN Stored rest[kLanes];
      hn::Store(stored, d, rest);
      std::memcpy(codes + i, rest, (n - i) * sizeof(Stored));
    }
  }
}

template <class F>
HWY_INLINE void from_codes(const uint8_t* codes, size_t n, float* x, F f) {
  const hn::Rebind<uint8_t, F32> d;
  for (size_t i = 0; i < n; i += kLanes) {
    if (n - i >= kLanes) {
      hn::StoreU(f(hn::PromoteTo(U32(), hn::LoadU(d, codes + i))), F32(), x + i);
    } else {
      HWY_ALIGN uint8_t rest[kLanes] = {};
      std::memcpy(rest, codes + i, n - i);
      store_n(f(hn::PromoteTo(U32(), hn::Load(d, rest))), x + i, n - i);
    }
  }
}

// Magnitudes as integers have the order of the numbers; a NaN's counts as 0.
HWY_INLINE VU32 magnitudes_of_numbers(V v) {
  const auto a = magnitude_bits(F32(), v);
  return hn::IfThenElseZero(hn::Not(less(F32(), hn::Set(U32(), 0x7F800000U), a)), a);
}

float largest_of(const float* x, int64_t count) {
  const hn::RebindToSigned<F32> di;
  const auto n = static_cast<size_t>(count);
  auto m0 = hn::Zero(di), m1 = hn::Zero(di);
  size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    m0 = hn::Max(m0, hn::BitCast(di, magnitudes_of_numbers(hn::LoadU(F32(), x + i))));
    m1 = hn::Max(m1, hn::BitCast(di, magnitudes_of_numbers(hn::LoadU(F32(), x + i + kLanes))));
  }
  for (; i < n; i += kLanes) m0 = hn::Max(m0, hn::BitCast(di, magnitudes_of_numbers(load_n(x + i, n - i))));
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, hn::Max(m0, m1))));
}

// ---- runs of numbers with one scale

/// Codes of x * scale; what saturates by more than rounding is counted.
template <class S>
HWY_INLINE int64_t quantize_run(const float* x, size_t n, float scale, uint8_t* codes) {
  const F32 d;
  const V s = hn::Set(d, scale);
  const auto infinity = hn::Set(U32(), 0x7F800000U);
  size_t clipped = 0;
  to_codes(x, n, codes, [&](V v, size_t) HWY_ATTR {
    const V scaled = hn::Mul(v, s);
    const auto code = round_nearest<S>(d, scaled);
    const auto beyond =
        hn::And(less(d, hn::Set(U32(), S::kMax), code), less(d, magnitude_bits(d, v), infinity));
    clipped += hn::CountTrue(U32(), beyond);
    return finish_code<S>(d, scaled, code, S::kMax);
  });
  return static_cast<int64_t>(clipped);
}

template <class S>
HWY_INLINE void dequantize_run(const uint8_t* codes, size_t n, float factor, float* x) {
  const F32 d;
  const V s = hn::Set(d, factor);
  from_codes(codes, n, x, [=](VU32 code) HWY_ATTR { return hn::Mul(from_code<S>(d, code), s); });
}

/// The largest f32 not above t.
float rounded_down(double t) {
  const auto f = static_cast<float>(t);
  if (static_cast<double>(f) <= t) return f;
  const auto bits = std::bit_cast<uint32_t>(f);
  if (f == 0) return -std::numeric_limits<float>::denorm_min();
  return std::bit_cast<float>(f > 0 ? bits - 1 : bits + 1);
}

// The code nearest to x / absmax, exactly: a number is above a threshold where it is above the threshold's
// product with absmax, which a double holds (29 + 24 bits), rounded down to what an f32 can be compared with.
HWY_INLINE void quantize_nf4(const float* x, size_t n, float absmax, uint8_t* codes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool is_plain = absmax > 0 && !std::isinf(absmax);
  float thresholds[15];
  for (int i = 0; i < 15; ++i) {
    const double middle = (double{kNf4Values[i]} + double{kNf4Values[i + 1]}) / 2;
    // Otherwise every number is 0, infinities are the ends.
    thresholds[i] = is_plain ? rounded_down(middle * double{absmax}) : i < 7 ? -kInfinity : kMaxF32;
  }
  const Nf4Coder coder(thresholds);
  to_codes(x, n, codes, [&](V v, size_t) HWY_ATTR { return coder(v); });
}

HWY_INLINE void dequantize_nf4(const uint8_t* codes, size_t n, float absmax, float* x) {
  const V s = hn::Set(F32(), absmax);
  const Sixteen numbers(kNf4Values);
  from_codes(codes, n, x, [=](VU32 code) HWY_ATTR { return hn::Mul(numbers(code), s); });
}

/// The integer nearest to 127 x / absmax, ties to even: the quotient is off by less than the distance of any
/// other tie, 2^-25.
uint32_t int8_exact(float x, float absmax) {
  if (std::isnan(x) || absmax == 0) return 0;
  if (std::isinf(absmax)) return std::isinf(x) ? (x > 0 ? 127U : 0x81U) : 0U;
  const double quotient = double{x} * 127.0 / double{absmax};
  return static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(quotient))) & 0xFFU;
}

// In f32, and once more in double for lanes so near to a tie that f32 might fall on its wrong side: the
// product's error is below 127 * 2^-23.
HWY_INLINE void quantize_int8(const float* x, size_t n, float absmax, uint8_t* codes) {
  const F32 d;
  const float inverse = 127.0F / absmax;
  if (!std::isfinite(inverse) || inverse == 0) {  // absmax is 0, infinite or nearly either
    for (size_t i = 0; i < n; ++i) codes[i] = static_cast<uint8_t>(int8_exact(x[i], absmax));
    return;
  }
  const V s = hn::Set(d, inverse), half = hn::Set(d, 0.5F), near = hn::Set(d, 0x1p-14F);
  to_codes(x, n, codes, [&](V v, size_t) HWY_ATTR {
    const V scaled = hn::Mul(v, s);
    auto code = hn::And(int8_nearest(d, scaled), hn::Set(U32(), 0xFFU));
    const V rest = hn::Abs(hn::Sub(scaled, int8_from_code(d, code)));
    const auto close = hn::Lt(hn::Abs(hn::Sub(rest, half)), near);
    if (HWY_LIKELY(hn::AllFalse(d, close))) return code;
    HWY_ALIGN float numbers[kLanes];
    HWY_ALIGN uint32_t exact[kLanes];
    hn::Store(v, d, numbers);
    for (size_t k = 0; k < kLanes; ++k) exact[k] = int8_exact(numbers[k], absmax);
    return hn::Load(U32(), exact);
  });
}

// f32 of code * absmax / 127 with one rounding.
HWY_INLINE void dequantize_int8(const uint8_t* codes, size_t n, float absmax, float* x) {
  for (size_t i = 0; i < n; ++i) {
    const auto code = static_cast<int8_t>(codes[i]);
    x[i] = static_cast<float>(static_cast<double>(code) * double{absmax} / 127.0);
  }
}

// ---- scales of blocks

using One = hn::CappedTag<float, 1>;

uint32_t e4m3_saturated(float x) {
  const One d;
  const auto v = hn::Set(d, x);
  return hn::GetLane(finish_code<MiniE4m3>(d, v, round_nearest<MiniE4m3>(d, v), MiniE4m3::kMax));
}

float e4m3_value(uint32_t code) {
  const One d;
  return hn::GetLane(from_code<MiniE4m3>(d, hn::Set(hn::RebindToUnsigned<One>(), code)));
}

/// A power of two not above 448 / amax.
float power_of_two_scale(float amax) {
  if (!(amax > 0) || std::isinf(amax)) return 1;
  const float scale = std::min(448.0F / amax, kMaxF32);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scale) & 0xFF800000U);
}

/// The least power of two not below amax / 448, at least 2^-127.
uint8_t mx_scale(float amax) {
  constexpr float kInverse = 1.0F / 448.0F;
  const auto bits = std::bit_cast<uint32_t>(amax * kInverse);
  if (bits == 0x7F800000U) return 0xFE;
  if (bits <= 0x00400000U) return 0;
  return static_cast<uint8_t>((bits >> 23) + ((bits & 0x7FFFFFU) != 0 ? 1 : 0));
}

float mx_inverse(uint32_t code) {
  return std::bit_cast<float>(code == 0xFE ? 0x00400000U : (254 - code) << 23);
}

float mx_value(uint32_t code) { return std::bit_cast<float>(code == 0 ? 0x00400000U : code << 23); }

uint32_t nv_scale(float amax, const TensorScale& tensor) {
  constexpr float kSixth = 1.0F / 6.0F;
  return e4m3_saturated(amax * (tensor.scale * kSixth));
}

float nv_inverse(uint32_t code, const TensorScale& tensor) {
  return std::min(1.0F / (e4m3_value(code) * (1.0F / tensor.scale)), kMaxF32);
}

float nv_factor(uint32_t code, const TensorScale& tensor) {
  return e4m3_value(code) * tensor.amax * (1.0F / 2688.0F);
}

// ---- a matrix

/// A block of a matrix, and where its scale stands.
struct Block {
  int64_t row, col, rows, cols, scale;
};

template <class F>
HWY_INLINE void for_blocks(Scheme scheme, int64_t rows, int64_t cols, F f) {
  const SchemeInfo& s = info(scheme);
  const int64_t height = s.block_rows == 0 ? 1 : s.block_rows,
                width = s.block_cols == 0 ? cols : s.block_cols;
  int64_t scale = 0;
  for (int64_t row = 0; row < rows; row += height)
    for (int64_t col = 0; col < cols; col += width)
      f(Block{row, col, std::min(height, rows - row), std::min(width, cols - col), scale++});
}

/// Numbers and codes of one row of a block.
struct Run {
  const float* x;
  size_t n;
  uint8_t* codes;
};

template <class F>
HWY_INLINE void for_runs(const Block& b, const float* x, int64_t cols, uint8_t* codes, int64_t row_bytes,
                         int64_t offset, F f) {
  for (int64_t r = b.row; r < b.row + b.rows; ++r)
    f(Run{x + r * cols + b.col, static_cast<size_t>(b.cols), codes + r * row_bytes + offset});
}

template <class T>
void put(uint8_t* scales, int64_t index, T value) {
  std::memcpy(scales + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}
template <class T>
T get(const uint8_t* scales, int64_t index) {
  T value;
  std::memcpy(&value, scales + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

/// A run of 4-bit codes by way of a byte each.
template <class F>
HWY_INLINE void quantize_nibbles(const Run& run, F f) {
  HWY_ALIGN uint8_t codes[kLongestNibbleBlock];
  f(codes);
  pack_nibbles(codes, run.n, run.codes);
}

int64_t quantize_block(Scheme scheme, const TensorScale& tensor, const Block& b, const Run& run, float amax,
                       uint8_t* scales) {
  switch (scheme) {
    case Scheme::kE4m3:
      return quantize_run<MiniE4m3>(run.x, run.n, tensor.scale, run.codes);
    case Scheme::kE5m2:
      return quantize_run<MiniE5m2>(run.x, run.n, tensor.scale, run.codes);
    case Scheme::kFp8Block1x128:
    case Scheme::kFp8Block128x128: {
      const float scale = power_of_two_scale(amax);
      put(scales, b.scale, 1.0F / scale);
      return quantize_run<MiniE4m3>(run.x, run.n, scale, run.codes);
    }
    case Scheme::kMxfp8: {
      const uint8_t code = mx_scale(amax);
      put(scales, b.scale, code);
      return quantize_run<MiniE4m3>(run.x, run.n, mx_inverse(code), run.codes);
    }
    case Scheme::kNvfp4: {
      const uint32_t code = nv_scale(amax, tensor);
      put(scales, b.scale, static_cast<uint8_t>(code));
      int64_t clipped = 0;
      quantize_nibbles(run, [&](uint8_t* codes) HWY_ATTR {
        clipped = quantize_run<MiniE2m1>(run.x, run.n, nv_inverse(code, tensor), codes);
      });
      return code == 0 ? 0 : clipped;  // under a scale that has vanished numbers become 0
    }
    case Scheme::kNf4:
      put(scales, b.scale, amax);
      quantize_nibbles(run, [&](uint8_t* codes) HWY_ATTR { quantize_nf4(run.x, run.n, amax, codes); });
      return 0;
    default:
      put(scales, b.scale, amax);
      quantize_int8(run.x, run.n, amax, run.codes);
      return 0;
  }
}

int64_t quantize_matrix(Scheme scheme, const TensorScale& tensor, const float* x, int64_t rows, int64_t cols,
                        uint8_t* codes, uint8_t* scales) {
  const int64_t row_bytes = code_row_bytes(scheme, cols);
  const int bits = info(info(scheme).codes).stored_bits;
  const bool has_blocks = info(scheme).block_rows > 0;
  int64_t clipped = 0;
  for_blocks(scheme, rows, cols, [&](const Block& b) HWY_ATTR {
    const int64_t offset = b.col * bits / 8;
    float amax = 0;
    if (has_blocks)
      for_runs(b, x, cols, codes, row_bytes, offset,
               [&](const Run& run) HWY_ATTR { amax = std::max(amax, largest_of(run.x, b.cols)); });
    for_runs(b, x, cols, codes, row_bytes, offset, [&](const Run& run) HWY_ATTR {
      clipped += quantize_block(scheme, tensor, b, run, amax, scales);
    });
  });
  return clipped;
}

void dequantize_block(Scheme scheme, const TensorScale& tensor, const Block& b, const uint8_t* codes,
                      size_t n, const uint8_t* scales, float* x) {
  switch (scheme) {
    case Scheme::kE4m3:
      return dequantize_run<MiniE4m3>(codes, n, tensor.decode, x);
    case Scheme::kE5m2:
      return dequantize_run<MiniE5m2>(codes, n, tensor.decode, x);
    case Scheme::kFp8Block1x128:
    case Scheme::kFp8Block128x128:
      return dequantize_run<MiniE4m3>(codes, n, get<float>(scales, b.scale), x);
    case Scheme::kMxfp8:
      return dequantize_run<MiniE4m3>(codes, n, mx_value(scales[b.scale]), x);
    case Scheme::kInt8Block256:
      return dequantize_int8(codes, n, get<float>(scales, b.scale), x);
    default:
      break;
  }
  HWY_ALIGN uint8_t bytes[kLongestNibbleBlock];
  unpack_nibbles(codes, n, bytes);
  if (scheme == Scheme::kNvfp4)
    return dequantize_run<MiniE2m1>(bytes, n, nv_factor(scales[b.scale], tensor), x);
  dequantize_nf4(bytes, n, get<float>(scales, b.scale), x);
}

void dequantize_matrix(Scheme scheme, const TensorScale& tensor, const uint8_t* codes, const uint8_t* scales,
                       int64_t rows, int64_t cols, float* x) {
  const int64_t row_bytes = code_row_bytes(scheme, cols);
  const int bits = info(info(scheme).codes).stored_bits;
  for_blocks(scheme, rows, cols, [&](const Block& b) HWY_ATTR {
    for (int64_t r = b.row; r < b.row + b.rows; ++r)
      dequantize_block(scheme, tensor, b, codes + r * row_bytes + b.col * bits / 8,
                       static_cast<size_t>(b.cols), scales, x + r * cols + b.col);
  });
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
