// The softmax of attention's forward pass on blocks of scores.
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

// Stands for the largest score of a row that has seen none: far below any score, and no NaN comes of -inf
// minus it.
constexpr float kNothingSeen = -1e38f;

// Where the left 16 of a row lie in a block of sums; the right ones a tile behind.
inline int64_t row_at(int row) { return row / 16 * 2 * kTileFloats + row % 16 * 16; }

inline __m512 row_maxima(const float* scores, int64_t blocks) {
  __m512 most[16];
#pragma GCC unroll 16
  for (int r = 0; r < 16; ++r)
    most[r] = _mm512_max_ps(_mm512_load_ps(scores + r * 16), _mm512_load_ps(scores + kTileFloats + r * 16));
  for (int64_t b = 1; b < blocks; ++b) {
    scores += kBlockFloats;
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) {
      most[r] = _mm512_max_ps(most[r], _mm512_load_ps(scores + r * 16));
      most[r] = _mm512_max_ps(most[r], _mm512_load_ps(scores + kTileFloats + r * 16));
    }
  }
  return over_lanes<Maximum>(most);
}

template <bool kDrops>
inline void exponentiate_row(const float* scores, int64_t blocks, int row, float factor,
                             const KeptWeights* kept, SoftmaxRows& rows, std::byte* to) {
  const __m512 c = _mm512_set1_ps(factor), max = _mm512_set1_ps(rows.max[row]);
  __m512 left_sum = _mm512_load_ps(rows.sum + row * 16), right_sum = _mm512_setzero_ps();
  for (int64_t b = 0; b < blocks; ++b, scores += kBlockFloats, to += kPanelStepBytes) {
    const __m512 left = exp2(_mm512_fmsub_ps(_mm512_load_ps(scores), c, max));
    const __m512 right = exp2(_mm512_fmsub_ps(_mm512_load_ps(scores + kTileFloats), c, max));
    left_sum = _mm512_add_ps(left_sum, left);
    right_sum = _mm512_add_ps(right_sum, right);
    __m512i both = to_bf16(left, right);
    if constexpr (kDrops) both = _mm512_maskz_mov_epi16(kept[b].words[row], both);
    _mm512_store_si512(to, both);
  }
  _mm512_store_ps(rows.sum + row * 16, _mm512_add_ps(left_sum, right_sum));
}

}  // namespace

void start(SoftmaxRows& rows) {
  std::fill(rows.max, rows.max + kPanel, kNothingSeen);
  std::fill(rows.sum, rows.sum + kPanel * 16, 0.0f);
}

void hide(const SeenKeys& seen, int64_t key, float* scores) {
  const __m512 hidden = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
  for (int r = 0; r < kPanel; ++r) {
    const uint32_t unseen = ~seen.bits(r, key);
    float* p = scores + row_at(r);
    _mm512_mask_store_ps(p, static_cast<__mmask16>(unseen), hidden);
    _mm512_mask_store_ps(p + kTileFloats, static_cast<__mmask16>(unseen >> 16), hidden);
  }
}

bool raise_max(const float* scores, int64_t blocks, int row_tiles, float factor, SoftmaxRows& rows) {
  __mmask16 risen = 0;
  for (int t = 0; t < row_tiles; ++t) {
    const __m512 most = row_maxima(scores + row_at(16 * t), blocks);
    const __m512 old = _mm512_load_ps(rows.max + 16 * t);
    const __m512 now = _mm512_max_ps(old, _mm512_mul_ps(most, _mm512_set1_ps(factor)));
    risen |= _mm512_cmp_ps_mask(now, old, _CMP_NEQ_UQ);
    _mm512_store_ps(rows.max + 16 * t, now);
    _mm512_store_ps(rows.rescale + 16 * t, exp2(_mm512_sub_ps(old, now)));
  }
  return risen != 0;
}

void rescale(int64_t blocks, int row_tiles, SoftmaxRows& rows, float* results) {
  for (int r = 0; r < 16 * row_tiles; ++r) {
    const __m512 factor = _mm512_set1_ps(rows.rescale[r]);
    _mm512_store_ps(rows.sum + r * 16, _mm512_mul_ps(factor, _mm512_load_ps(rows.sum + r * 16)));
    float* p = results + row_at(r);
    for (int64_t b = 0; b < blocks; ++b, p += kBlockFloats) {
      _mm512_store_ps(p, _mm512_mul_ps(factor, _mm512_load_ps(p)));
      _mm512_store_ps(p + kTileFloats, _mm512_mul_ps(factor, _mm512_load_ps(p + kTileFloats)));
    }
  }
}

void exponentiate(const float* scores, int64_t blocks, int row_tiles, float factor, const KeptWeights* kept,
                  SoftmaxRows& rows, std::byte* probabilities) {
  for (int r = 0; r < 16 * row_tiles; ++r)
    if (kept == nullptr)
      exponentiate_row<false>(scores + row_at(r), blocks, r, factor, kept, rows, probabilities + r * 64);
    else
      exponentiate_row<true>(scores + row_at(r), blocks, r, factor, kept, rows, probabilities + r * 64);
}

void finish(SoftmaxRows& rows, const float* results, int64_t num_rows, int64_t head_dim, float inverse_keep,
            Bf16* out, int64_t stride, float* lse) {
  alignas(64) float sums[kPanel], inverse[kPanel];
  for (int t = 0; t < 2; ++t) {
    __m512 parts[16];
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) parts[r] = _mm512_load_ps(rows.sum + (16 * t + r) * 16);
    const __m512 sum = over_lanes<Sum>(parts);
    _mm512_store_ps(sums + 16 * t, sum);
    const __mmask16 some = _mm512_cmp_ps_mask(sum, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    _mm512_store_ps(inverse + 16 * t, _mm512_maskz_div_ps(some, _mm512_set1_ps(inverse_keep), sum));
  }
  for (int r = 0; r < num_rows; ++r, out += stride) {
    const __m512 factor = _mm512_set1_ps(inverse[r]);
    const float* p = results + row_at(r);
    for (int64_t c = 0; c < head_dim; c += kPanel, p += kBlockFloats)
      _mm512_mask_storeu_epi16(out + c, first_bits(head_dim - c),
                               to_bf16(_mm512_mul_ps(factor, _mm512_load_ps(p)),
                                       _mm512_mul_ps(factor, _mm512_load_ps(p + kTileFloats))));
  }
  if (lse != nullptr) log_sums(rows.max, sums, num_rows, lse);
}

}  // namespace plimsoll::cpu::bf16

#pragma GCC pop_options
