// bf16 numbers to codes of E4M3 by their bits alone, 32 at a time: under a scale that is a power of two the
// exponent moves, and the last four bits of the mantissa are rounded away. AVX-512 alone; other instruction
// sets take numbers by way of f32, with bit-identical results.
//
//   bf16   s eeeeeeee mmmmmmm      y = magnitude + (7 - code of the scale) * 128
//   E4M3   s eeee mmm              code = y / 16 to nearest even; below 2^-6 more bits are cut off
//
// To be included after hwy/foreach_target.h; compiled once per target.
#if defined(PLIMSOLL_NUMERICS_BF16_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_NUMERICS_BF16_CODES_INL_H_
#undef PLIMSOLL_NUMERICS_BF16_CODES_INL_H_
#else
#define PLIMSOLL_NUMERICS_BF16_CODES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3
inline constexpr size_t kBf16Lanes = 32;
/// Of scales under which bits decide: a subnormal number of bf16 becomes 0, and none is moved out of 16 bits.
inline constexpr uint32_t kLeastField = 17, kMostField = 246;

/// Codes of the scales of blocks (the exponent field of what a code is multiplied with), by their largest
/// magnitudes: the least power of two not below amax / 448, which is 1.75 * 2^8.
HWY_INLINE __m512i scale_fields(__m512i amax) {
  const __m512i up = _mm512_srli_epi16(_mm512_add_epi16(amax, _mm512_set1_epi16(31)), 7);
  return _mm512_sub_epi16(up, _mm512_set1_epi16(8));
}

/// Which of them have numbers that bits alone decide; zeros alone are among them.
HWY_INLINE __mmask32 decided(__m512i amax, __m512i fields) {
  const __m512i above = _mm512_sub_epi16(fields, _mm512_set1_epi16(kLeastField));
  const __mmask32 inside = _mm512_cmple_epu16_mask(above, _mm512_set1_epi16(kMostField - kLeastField));
  const __mmask32 finite = _mm512_cmplt_epi16_mask(amax, _mm512_set1_epi16(0x7F80));
  return (inside & finite) | _mm512_testn_epi16_mask(amax, amax);
}

/// What is added to magnitudes; `zeros`: blocks of zeros alone.
HWY_INLINE __m512i moves_of(__m512i fields, __mmask32 zeros) {
  const __m512i moves = _mm512_slli_epi16(_mm512_sub_epi16(_mm512_set1_epi16(7), fields), 7);
  return _mm512_mask_mov_epi16(moves, zeros, _mm512_set1_epi16(-120 * 128));
}

/// Those of y where some number is below E4M3's normal ones. The significand, of eight bits, is `cut` bits
/// longer than the code's, and half of what is cut off decides.
HWY_INLINE __m512i small_codes(__m512i y) {
  const auto set = [](short value) HWY_ATTR { return _mm512_set1_epi16(value); };
  const __m512i exponent = _mm512_srai_epi16(y, 7), one = set(1);
  const __m512i cut = _mm512_min_epi16(_mm512_max_epi16(_mm512_sub_epi16(set(5), exponent), set(4)), set(9));
  const __m512i significand = _mm512_or_si512(_mm512_and_si512(y, set(0x7F)), set(0x80));
  const __m512i odd = _mm512_and_si512(_mm512_srlv_epi16(significand, cut), one);
  const __m512i half = _mm512_sub_epi16(_mm512_sllv_epi16(one, _mm512_sub_epi16(cut, one)), one);
  const __m512i rounded = _mm512_add_epi16(significand, _mm512_add_epi16(half, odd));
  const __m512i above = _mm512_max_epi16(_mm512_sub_epi16(exponent, one), _mm512_setzero_si512());
  return _mm512_add_epi16(_mm512_srlv_epi16(rounded, cut), _mm512_slli_epi16(above, 3));
}

/// Codes in the lower bytes of 16 bits.
HWY_INLINE __m512i codes_of_bf16(__m512i x, __m512i moves) {
  const __m512i y = _mm512_add_epi16(_mm512_and_si512(x, _mm512_set1_epi16(0x7FFF)), moves);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi16(y, 4), _mm512_set1_epi16(1));
  __m512i codes = _mm512_srli_epi16(_mm512_add_epi16(_mm512_add_epi16(y, _mm512_set1_epi16(7)), odd), 4);
  if (HWY_UNLIKELY(_mm512_cmplt_epi16_mask(y, _mm512_set1_epi16(128)) != 0)) codes = small_codes(y);
  constexpr int kOrAnd = 0xF8;  // a | (b & c)
  return _mm512_ternarylogic_epi64(codes, _mm512_srli_epi16(x, 8), _mm512_set1_epi16(0x80), kOrAnd);
}

/// Complements of magnitudes: the largest magnitude is the least of them.
HWY_INLINE __m512i complements(__m512i x) {
  constexpr int kNand = 0x3F;  // ~(a & b)
  return _mm512_ternarylogic_epi64(x, _mm512_set1_epi16(0x7FFF), x, kNand);
}

HWY_INLINE uint16_t largest_bf16(__m512i least) {
  const __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(least), _mm512_extracti64x4_epi64(least, 1));
  const __m128i quarter = _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  return static_cast<uint16_t>(~_mm_cvtsi128_si32(_mm_minpos_epu16(quarter)));
}
#endif

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
