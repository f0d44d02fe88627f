// Shared helpers of the AVX512_BF16 kernels. To be included in a region compiled for
// "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16", after <immintrin.h>.
#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace plimsoll::cpu::bf16 {
namespace {

/// The first `count` of 32, or of 16.
constexpr uint32_t first_bits(int64_t count) {
  return count >= 32 ? ~0u : count <= 0 ? 0u : (1u << count) - 1u;
}
constexpr __mmask16 first_16(int64_t count) {
  return static_cast<__mmask16>(first_bits(count < 16 ? count : 16));
}

inline __m512i to_bf16(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

inline __m512i to_f16(__m512 low, __m512 high) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(low, kNearest)),
                            _mm512_cvtps_ph(high, kNearest), 1);
}

inline int64_t size_of(ir::DType dtype) { return dtype == ir::DType::kF32 ? 4 : 2; }

/// 16 elements as f32.
inline __m512 load_low(const void* p, __mmask16 mask, ir::DType dtype) {
  if (dtype == ir::DType::kF32) return _mm512_maskz_loadu_ps(mask, p);
  const __m256i x = _mm256_maskz_loadu_epi16(mask, p);
  if (dtype == ir::DType::kF16) return _mm512_cvtph_ps(x);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

template <bool kPast>
inline void store_line(__m512i x, std::byte* p) {
  if constexpr (kPast)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), x);
  else
    _mm512_storeu_si512(p, x);
}

/// Rows of 16 words become columns.
inline void transpose(__m512i (&x)[16]) {
  __m512i y[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
  // x[4 g + c] has in its 128-bit block b the column 4 b + c of rows 4 g to 4 g + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    y[c] = _mm512_shuffle_i32x4(x[c], x[4 + c], 0x88);
    y[4 + c] = _mm512_shuffle_i32x4(x[c], x[4 + c], 0xdd);
    y[8 + c] = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0x88);
    y[12 + c] = _mm512_shuffle_i32x4(x[8 + c], x[12 + c], 0xdd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    x[c] = _mm512_shuffle_i32x4(y[c], y[8 + c], 0x88);
    x[8 + c] = _mm512_shuffle_i32x4(y[c], y[8 + c], 0xdd);
    x[4 + c] = _mm512_shuffle_i32x4(y[4 + c], y[12 + c], 0x88);
    x[12 + c] = _mm512_shuffle_i32x4(y[4 + c], y[12 + c], 0xdd);
  }
}

struct Sum {
  static inline __m512 of(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
};
struct Maximum {
  static inline __m512 of(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
};

/// Lane r of the result: the sum or maximum over the lanes of x[r].
template <class Op>
inline __m512 over_lanes(const __m512 (&x)[16]) {
  __m512 a[8], b[4], c[2];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    a[i] = Op::of(_mm512_shuffle_f32x4(x[i], x[i + 8], 0x44), _mm512_shuffle_f32x4(x[i], x[i + 8], 0xee));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    b[i] = Op::of(_mm512_shuffle_f32x4(a[i], a[i + 4], 0x88), _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd));
    // In each 128-bit block of b[i]: four lanes of row i, i + 8, i + 4 or i + 12.
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i)
    c[i] = Op::of(_mm512_shuffle_ps(b[i], b[i + 2], 0x44), _mm512_shuffle_ps(b[i], b[i + 2], 0xee));
  const __m512 y = Op::of(_mm512_shuffle_ps(c[0], c[1], 0x88), _mm512_shuffle_ps(c[0], c[1], 0xdd));
  const __m512i order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
  return _mm512_permutexvar_ps(order, y);
}

/// 2^x, 0 for -inf: 2^floor(x) times a minimax polynomial of what is left, relative error 3e-6, exact at
/// whole numbers.
inline __m512 exp2_polynomial(__m512 x) {
  const __m512 rest = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF);
  __m512 p = _mm512_set1_ps(0.0134266847f);
  p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(0.0522424728f));
  p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(0.241280198f));
  p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(0.693044841f));
  return _mm512_fmadd_ps(p, rest, _mm512_set1_ps(1.0f));
}
inline __m512 exp2(__m512 x) { return _mm512_scalef_ps(exp2_polynomial(x), x); }
/// The same, 0 where the mask is not set.
inline __m512 exp2(__mmask16 mask, __m512 x) { return _mm512_maskz_scalef_ps(mask, exp2_polynomial(x), x); }

}  // namespace
}  // namespace plimsoll::cpu::bf16
