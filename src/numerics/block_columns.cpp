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

/// Codes [round up(width, 16), stride] to their places.
void turn_codes(const ColumnBlocks& b, const uint8_t* codes) {
  auto* const to = reinterpret_cast<uint8_t*>(b.codes);
  for (int64_t c = 0; c < b.cols; c += 16)
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

}  // namespace
}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::numerics {
namespace {

HWY_EXPORT(quantize_turned);

}  // namespace

void quantize_columns(const ColumnBlocks& blocks, std::byte* scratch) {
  const SchemeInfo& s = info(blocks.scheme);
  PLIMSOLL_CHECK(s.block_rows == 1 && s.codes == Format::kE4m3, "block columns: scheme");
  PLIMSOLL_CHECK(blocks.stride % kColumnUnit == 0 && blocks.cols <= blocks.stride &&
                     blocks.stride <= kMostColumns && blocks.rows <= blocks.width &&
                     blocks.width <= s.block_cols,
                 "block columns: extents");
  HWY_DYNAMIC_DISPATCH(quantize_turned)(blocks, scratch);
}

}  // namespace plimsoll::numerics
#endif
