// The largest magnitudes of columns come a vector of columns at a time, row after row; then rows become
// codes, each number with its column's scale; then codes are turned, 16 x 16 bytes at a time:
//
//   x [rows, cols] ─► amax, scale of each column ─► codes [rows, cols] ─► codes [cols, rows]
#include "numerics/block_columns.h"

#include "numerics/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/block_columns.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "numerics/bf16_codes-inl.h"
#include "numerics/block_runs-inl.h"
#include "numerics/block_scales-inl.h"
#include "numerics/minifloat-inl.h"
#include "numerics/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The largest magnitude of a column that is a number.
float largest_number(const ColumnBlocks& b, int64_t column) {
  float largest = 0;
  for (int64_t r = 0; r < b.rows; ++r) {
    const uint32_t bits = std::bit_cast<uint32_t>(b.x[r * b.stride + column]) & 0x7FFFFFFFU;
    if (bits <= 0x7F800000U) largest = std::max(largest, std::bit_cast<float>(bits));
  }
  return largest;
}

void measure_columns(const ColumnBlocks& b, float* amax) {
  const I32 d;
  for (int64_t c = 0; c < b.stride; c += static_cast<int64_t>(kLanes)) {
    auto largest = hn::Zero(d);
    for (int64_t r = 0; r < b.rows; ++r)
      largest = hn::Max(largest, signless(hn::LoadU(F32(), b.x + r * b.stride + c)));
    hn::StoreU(hn::BitCast(F32(), largest), F32(), amax + c);
    if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(largest, hn::Set(d, 0x7F800000))))) continue;
    for (int64_t k = c; k < c + static_cast<int64_t>(kLanes); ++k) amax[k] = largest_number(b, k);
  }
}

/// What numbers of each column are multiplied with; writes the scales.
void scale_columns(const ColumnBlocks& b, const float* amax, float* multipliers) {
  auto* const scales = reinterpret_cast<uint8_t*>(b.scales);
  if (b.scheme == Scheme::kMxfp8) {
    HWY_ALIGN uint32_t codes[kMostColumns];
    mx_scales(amax, static_cast<size_t>(b.stride), codes, multipliers);
    for (int64_t c = 0; c < b.cols; ++c) scales[c * b.scale_stride] = static_cast<uint8_t>(codes[c]);
    return;
  }
  for (int64_t c = 0; c < b.stride; ++c) multipliers[c] = power_of_two_scale(amax[c]);
  for (int64_t c = 0; c < b.cols; ++c) put(scales + c * b.scale_stride, 0, 1.0F / multipliers[c]);
}

/// 16 rows of 16 bytes become columns. A round takes rows i and i + 8 to rows 2 i and 2 i + 1: the highest
/// bit of a row's number becomes the lowest of the column's, and so on around.
HWY_INLINE void turn_16(const uint8_t* from, size_t stride, uint8_t* to, size_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t r = 0; r < 16; ++r)
    for (size_t c = 0; c < 16; ++c) to[c * to_stride + r] = from[r * stride + c];
#else
  const hn::FixedTag<uint8_t, 16> d;
  hn::Vec<decltype(d)> a[16], b[16];
  HWY_UNROLL(16)
  for (size_t i = 0; i < 16; ++i) a[i] = hn::LoadU(d, from + i * stride);
  for (int round = 0; round < 2; ++round) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < 8; ++i) {
      b[2 * i] = hn::InterleaveLower(d, a[i], a[i + 8]);
      b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + 8]);
    }
    HWY_UNROLL(8)
    for (size_t i = 0; i < 8; ++i) {
      a[2 * i] = hn::InterleaveLower(d, b[i], b[i + 8]);
      a[2 * i + 1] = hn::InterleaveUpper(d, b[i], b[i + 8]);
    }
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < 16; ++i) hn::StoreU(a[i], d, to + i * to_stride);
#endif
}

#if HWY_TARGET <= HWY_AVX3
/// The same of four tiles side by side.
HWY_INLINE void turn_16_by_64(const uint8_t* from, int64_t stride, uint8_t* to, int64_t to_stride) {
  __m512i a[16], b[16];
  HWY_UNROLL(16)
  for (int64_t i = 0; i < 16; ++i) a[i] = _mm512_loadu_si512(from + i * stride);
  for (int round = 0; round < 2; ++round) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < 8; ++i) {
      b[2 * i] = _mm512_unpacklo_epi8(a[i], a[i + 8]);
      b[2 * i + 1] = _mm512_unpackhi_epi8(a[i], a[i + 8]);
    }
    HWY_UNROLL(8)
    for (size_t i = 0; i < 8; ++i) {
      a[2 * i] = _mm512_unpacklo_epi8(b[i], b[i + 8]);
      a[2 * i + 1] = _mm512_unpackhi_epi8(b[i], b[i + 8]);
    }
  }
  const auto put = [=](int64_t column, __m128i x)
                       HWY_ATTR { _mm_storeu_si128(reinterpret_cast<__m128i*>(to + column * to_stride), x); };
  HWY_UNROLL(16)
  for (int64_t i = 0; i < 16; ++i) {
    put(i, _mm512_castsi512_si128(a[i]));
    put(16 + i, _mm512_extracti32x4_epi32(a[i], 1));
    put(32 + i, _mm512_extracti32x4_epi32(a[i], 2));
    put(48 + i, _mm512_extracti32x4_epi32(a[i], 3));
  }
}
#endif

/// 16 rows of 64 bytes at once, where vectors are so long; columns done.
HWY_INLINE int64_t turn_wide([[maybe_unused]] const ColumnBlocks& b, [[maybe_unused]] const uint8_t* codes) {
  int64_t c = 0;
#if HWY_TARGET <= HWY_AVX3
  if (b.width % 16 != 0) return 0;
  auto* const to = reinterpret_cast<uint8_t*>(b.codes);
  for (; c + 64 <= b.cols; c += 64)
    for (int64_t r = 0; r < b.width; r += 16)
      turn_16_by_64(codes + r * b.stride + c, b.stride, to + c * b.code_stride + r, b.code_stride);
#endif
  return c;
}

/// Codes [round up(width, 16), stride] to their places.
void turn_codes(const ColumnBlocks& b, const uint8_t* codes) {
  auto* const to = reinterpret_cast<uint8_t*>(b.codes);
  for (int64_t c = turn_wide(b, codes); c < b.cols; c += 16)
    for (int64_t r = 0; r < b.width; r += 16) {
      const uint8_t* const from = codes + r * b.stride + c;
      const int64_t columns = std::min<int64_t>(16, b.cols - c), rows = std::min<int64_t>(16, b.width - r);
      uint8_t* const place = to + c * b.code_stride + r;
      if (columns == 16 && rows == 16) {
        turn_16(from, static_cast<size_t>(b.stride), place, static_cast<size_t>(b.code_stride));
        continue;
      }
      HWY_ALIGN uint8_t part[16 * 16];
      turn_16(from, static_cast<size_t>(b.stride), part, 16);
      for (int64_t i = 0; i < columns; ++i)
        std::memcpy(place + i * b.code_stride, part + 16 * i, static_cast<size_t>(rows));
    }
}

void quantize_turned(const ColumnBlocks& b, std::byte* scratch) {
  HWY_ALIGN float amax[kMostColumns], multipliers[kMostColumns];
  measure_columns(b, amax);
  scale_columns(b, amax, multipliers);
  for (int64_t r = 0; r < b.rows; ++r)
    encode_vectors<uint8_t, false>(b.x + r * b.stride, static_cast<size_t>(b.stride), scratch + r * b.stride,
                                   [&](V v, size_t i) HWY_ATTR {
                                     const V scaled = hn::Mul(v, hn::Load(F32(), multipliers + i));
                                     return nearest_code<MiniE4m3, true>(F32(), scaled);
                                   });
  const int64_t zeros = (b.width + 15) / 16 * 16 - b.rows;
  std::memset(scratch + b.rows * b.stride, 0, static_cast<size_t>(zeros * b.stride));
  turn_codes(b, reinterpret_cast<const uint8_t*>(scratch));
}

#if HWY_TARGET <= HWY_AVX3
/// Scales of 32 columns from column `c` on, by their fields.
HWY_INLINE void put_fields(const ColumnBlocks& b, int64_t c, __m512i fields) {
  HWY_ALIGN uint16_t each[kBf16Lanes];
  _mm512_store_si512(each, fields);
  auto* const scales = reinterpret_cast<uint8_t*>(b.scales) + c * b.scale_stride;
  for (int64_t k = 0; k < static_cast<int64_t>(kBf16Lanes); ++k) {
    if (b.scheme == Scheme::kMxfp8)
      scales[k * b.scale_stride] = static_cast<uint8_t>(each[k]);
    else
      put(scales + k * b.scale_stride, 0, static_cast<uint32_t>(each[k] == 0 ? 127 : each[k]) << 23);
  }
}
#endif

bool quantize_turned_bf16([[maybe_unused]] const ColumnBlocks& b, [[maybe_unused]] const uint16_t* x,
                          [[maybe_unused]] int64_t row_stride, [[maybe_unused]] std::byte* scratch) {
#if HWY_TARGET <= HWY_AVX3
  for (int64_t c = 0; c < b.cols; c += static_cast<int64_t>(kBf16Lanes)) {
    const uint16_t* row = x + c;
    __m512i least = _mm512_set1_epi16(-1);
    for (int64_t r = 0; r < b.rows; ++r, row += row_stride)
      least = _mm512_min_epu16(least, complements(_mm512_loadu_si512(row)));
    const __m512i amax = _mm512_andnot_si512(least, _mm512_set1_epi16(-1)), fields = scale_fields(amax);
    const __mmask32 zeros = _mm512_testn_epi16_mask(amax, amax);
    if (decided(amax, fields) != ~__mmask32{0}) return false;
    put_fields(b, c, _mm512_maskz_mov_epi16(~zeros, fields));
    const __m512i moves = moves_of(fields, zeros);
    row = x + c;
    for (int64_t r = 0; r < b.rows; ++r, row += row_stride)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(scratch + r * b.stride + c),
                          _mm512_cvtepi16_epi8(codes_of_bf16(_mm512_loadu_si512(row), moves)));
  }
  std::memset(scratch + b.rows * b.stride, 0,
              static_cast<size_t>(((b.width + 15) / 16 * 16 - b.rows) * b.stride));
  turn_codes(b, reinterpret_cast<const uint8_t*>(scratch));
  return true;
#else
  return false;
#endif
}

}  // namespace
}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::numerics {
namespace {

HWY_EXPORT(quantize_turned);
HWY_EXPORT(quantize_turned_bf16);

void check_extents(const ColumnBlocks& blocks) {
  const SchemeInfo& s = info(blocks.scheme);
  PLIMSOLL_CHECK(s.block_rows == 1 && s.codes == Format::kE4m3, "block columns: scheme");
  PLIMSOLL_CHECK(blocks.stride % kColumnUnit == 0 && blocks.cols <= blocks.stride &&
                     blocks.stride <= kMostColumns && blocks.rows <= blocks.width &&
                     blocks.width <= s.block_cols,
                 "block columns: extents");
}

}  // namespace

void quantize_columns(const ColumnBlocks& blocks, std::byte* scratch) {
  check_extents(blocks);
  HWY_DYNAMIC_DISPATCH(quantize_turned)(blocks, scratch);
}

bool quantize_bf16_columns(const ColumnBlocks& blocks, const uint16_t* x, int64_t row_stride,
                           std::byte* scratch) {
  check_extents(blocks);
  if (blocks.cols % 32 != 0) return false;
  return HWY_DYNAMIC_DISPATCH(quantize_turned_bf16)(blocks, x, row_stride, scratch);
}

}  // namespace plimsoll::numerics
#endif
