// The softmax's derivative on blocks of attention's backward pass, and what goes into and out of the blocks.
#include <immintrin.h>

// g++ 12 warns of its own header's undefined vectors (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <algorithm>
#include <limits>

#include "backends/cpu/kernels/attention/attention_bf16_blocks.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#include "backends/cpu/kernels/gemm/avx512_bf16-inl.h"

namespace plimsoll::cpu::bf16 {
namespace {

// One row of 32 keys as bf16: probabilities as they multiply dout, and gradients of scores.
struct Row {
  __m512i probs, dscores;
};

template <bool kHides, bool kDrops>
inline Row differentiate_row(const SoftmaxGradient& g, int r) {
  const int64_t at = r / 16 * 2 * kTileFloats + r % 16 * 16;
  const __m512 lse = _mm512_set1_ps(g.rows->lse[r]), delta = _mm512_set1_ps(g.rows->delta[r]);
  const __m512 c = _mm512_set1_ps(g.factor), inverse_keep = _mm512_set1_ps(g.inverse_keep);
  const uint32_t seen = kHides ? g.seen->bits(r, g.key) : 0, kept = kDrops ? g.kept->words[r] : 0;
  __m512 p[2], ds[2];
#pragma GCC unroll 2
  for (int t = 0; t < 2; ++t) {
    const __m512 x = _mm512_fmsub_ps(_mm512_load_ps(g.scores + at + t * kTileFloats), c, lse);
    p[t] = kHides ? exp2(static_cast<__mmask16>(seen >> 16 * t), x) : exp2(x);
    __m512 dp = _mm512_load_ps(g.dprobs + at + t * kTileFloats);
    if constexpr (kDrops) dp = _mm512_maskz_mul_ps(static_cast<__mmask16>(kept >> 16 * t), dp, inverse_keep);
    ds[t] = _mm512_mul_ps(p[t], _mm512_sub_ps(dp, delta));
    if constexpr (kDrops)
      p[t] = _mm512_maskz_mul_ps(static_cast<__mmask16>(kept >> 16 * t), p[t], inverse_keep);
  }
  return {to_bf16(p[0], p[1]), to_bf16(ds[0], ds[1])};
}

// Two rows become a row of pairs in each of B's tiles.
inline void store_pairs(__m512i even, __m512i odd, std::byte* to) {
  _mm512_store_si512(to, _mm512_unpacklo_epi16(even, odd));
  _mm512_store_si512(to + 1024, _mm512_unpackhi_epi16(even, odd));
}

template <bool kHides, bool kDrops>
void differentiate_rows(const SoftmaxGradient& g) {
  for (int r = 0; r < kPanel; r += 2) {
    const Row even = differentiate_row<kHides, kDrops>(g, r),
              odd = differentiate_row<kHides, kDrops>(g, r + 1);
    store_pairs(even.probs, odd.probs, g.probs_b + r * 32);
    store_pairs(even.dscores, odd.dscores, g.dscores_b + r * 32);
    _mm512_store_si512(g.dscores_a + r * 64, even.dscores);
    _mm512_store_si512(g.dscores_a + r * 64 + 64, odd.dscores);
  }
}

// sum + a . b over 32 bf16; see gemm_bf16_avx512.cpp.
inline void multiply_add(__m512i a, __m512i b, __m512& sum) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

inline __m512 row_product(const Bf16* a, const Bf16* b, int64_t size) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t c = 0; c < size; c += kPanel) {
    const uint32_t mask = first_bits(size - c);
    multiply_add(_mm512_maskz_loadu_epi16(mask, a + c), _mm512_maskz_loadu_epi16(mask, b + c), sum);
  }
  return sum;
}

// 16 x 16 sums as 16 columns, multiplied by `factor`.
inline void load_columns(const float* sums, __m512 factor, __m512i (&x)[16]) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    x[i] = _mm512_castps_si512(_mm512_mul_ps(factor, _mm512_load_ps(sums + i * 16)));
  transpose(x);
}

}  // namespace

void load_rows(const float* lse, const Bf16* dout, int64_t dout_stride, const Bf16* out, int64_t out_stride,
               int64_t num_rows, int64_t head_dim, GradientRows& rows) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int r = 0; r < kPanel; ++r)
    rows.lse[r] = r >= num_rows || lse[r] == -kInfinity ? kInfinity : lse[r] * kLog2E;
  for (int64_t t = 0; t < 2; ++t) {
    __m512 parts[16];
    for (int64_t r = 0; r < 16; ++r)
      parts[r] = 16 * t + r < num_rows ? row_product(dout + (16 * t + r) * dout_stride,
                                                     out + (16 * t + r) * out_stride, head_dim)
                                       : _mm512_setzero_ps();
    _mm512_store_ps(rows.delta + 16 * t, over_lanes<Sum>(parts));
  }
}

void differentiate(const SoftmaxGradient& g) {
  if (g.kept == nullptr)
    g.seen == nullptr ? differentiate_rows<false, false>(g) : differentiate_rows<true, false>(g);
  else
    g.seen == nullptr ? differentiate_rows<false, true>(g) : differentiate_rows<true, true>(g);
}

void write_rows(const float* sums, int64_t num_rows, int64_t columns, float factor, Bf16* to,
                int64_t stride) {
  const __m512 f = _mm512_set1_ps(factor);
  for (int64_t r = 0; r < num_rows; ++r, to += stride) {
    const float* p = sums + r / 16 * 2 * kTileFloats + r % 16 * 16;
    for (int64_t c = 0; c < columns; c += kPanel, p += kBlockFloats)
      _mm512_mask_storeu_epi16(
          to + c, first_bits(columns - c),
          to_bf16(_mm512_mul_ps(f, _mm512_load_ps(p)), _mm512_mul_ps(f, _mm512_load_ps(p + kTileFloats))));
  }
}

void write_keys(const float* sums, int64_t num_keys, int64_t head_dim, float factor, Bf16* to,
                int64_t stride) {
  const __m512 f = _mm512_set1_ps(factor);
  for (int64_t c = 0; c < head_dim; c += kPanel, sums += kBlockFloats)
    for (int64_t t = 0; t < 2; ++t) {
      __m512i above[16], below[16];
      load_columns(sums + t * kTileFloats, f, above);
      load_columns(sums + (2 + t) * kTileFloats, f, below);
      for (int64_t j = 0; j < 16; ++j) {
        const int64_t key = key_of_column(16 * t + j);
        if (key < num_keys)
          _mm512_mask_storeu_epi16(to + key * stride + c, first_bits(head_dim - c),
                                   to_bf16(_mm512_castsi512_ps(above[j]), _mm512_castsi512_ps(below[j])));
      }
    }
}

}  // namespace plimsoll::cpu::bf16

#pragma GCC pop_options
