// Operations of bf16 attention on blocks of 32 queries x 32 keys between its products. A block of fp32 sums
// is four tiles of 16 x 16, as gemm_bf16.h leaves it; a block of bf16 is a step of a panel of A or of B.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/attention/attention_bf16.h"
#include "backends/cpu/kernels/attention/attention_layout.h"
#include "backends/cpu/kernels/gemm/gemm_bf16.h"

namespace plimsoll::cpu::bf16 {

/// log2(e).
inline constexpr float kLog2E = 1.44269504f;

/// The keys that each row of a block of queries sees: [lower, upper). Rows behind the last query see what it
/// sees.
struct SeenKeys {
  int32_t lower[kPanel] = {}, upper[kPanel] = {};
  int32_t min_lower = 0, max_lower = 0, min_upper = 0, max_upper = 0;

  SeenKeys() = default;
  /// Of `rows` queries from `first` on.
  SeenKeys(const MaskView& mask, int64_t first, int64_t rows);
  [[nodiscard]] bool any(int64_t key) const { return key < max_upper && key + kPanel > min_lower; }
  [[nodiscard]] bool all(int64_t key) const { return key >= max_lower && key + kPanel <= min_upper; }
  /// Bit j: the row sees key + j.
  [[nodiscard]] uint32_t bits(int64_t row, int64_t key) const {
    return below(upper[row] - key) & ~below(lower[row] - key);
  }

 private:
  static uint32_t below(int64_t end) { return end >= 32 ? ~0u : end <= 0 ? 0u : (1u << end) - 1u; }
};

/// Which weights of 32 queries and 32 keys dropout keeps: bit j of word i.
struct KeptWeights {
  alignas(64) uint32_t words[kPanel];
};
/// `query` and `key` count from the start of the sequence, of `tokens` tokens.
void draw_kept(const AttentionDropout& dropout, const ops::RandomStream& stream, int64_t query, int64_t key,
               int64_t tokens, KeptWeights& kept);

/// The softmax of a block of queries as it runs over tiles of keys; scores are in base 2.
struct SoftmaxRows {
  alignas(64) float max[kPanel];
  alignas(64) float rescale[kPanel];   ///< what sums so far are to be multiplied by
  alignas(64) float sum[kPanel * 16];  ///< 16 partial sums a row
};
void start(SoftmaxRows& rows);

/// Sets the scores of keys from `key` on that a row does not see to -inf.
void hide(const SeenKeys& seen, int64_t key, float* scores);
/// Takes `factor` * the scores of `blocks` blocks into the maxima; true if any rose, rows.rescale then being
/// set.
bool raise_max(const float* scores, int64_t blocks, int row_tiles, float factor, SoftmaxRows& rows);
/// Multiplies sums so far, and `blocks` blocks of 32 columns of results.
void rescale(int64_t blocks, int row_tiles, SoftmaxRows& rows, float* results);
/// 2^(factor * score - max), summed and written to a panel of A. `kept`, one for each block, may be null.
void exponentiate(const float* scores, int64_t blocks, int row_tiles, float factor, const KeptWeights* kept,
                  SoftmaxRows& rows, std::byte* probabilities);
/// Rows of results, divided by their sums and by what dropout keeps, as bf16; lse may be null.
void finish(SoftmaxRows& rows, const float* results, int64_t num_rows, int64_t head_dim, float inverse_keep,
            Bf16* out, int64_t stride, float* lse);
/// lse = ln(2^max * sum) of each row.
void log_sums(const float* max, const float* sum, int64_t count, float* lse);

/// What the backward pass knows of a block of queries.
struct GradientRows {
  alignas(64) float lse[kPanel];    ///< in base 2; +inf where the row sees nothing or is not there
  alignas(64) float delta[kPanel];  ///< sum over head_dim of dout * out
};
/// lse [num_rows], dout and out [num_rows][head_dim].
void load_rows(const float* lse, const Bf16* dout, int64_t dout_stride, const Bf16* out, int64_t out_stride,
               int64_t num_rows, int64_t head_dim, GradientRows& rows);

/// Operands of `differentiate`: from scores and dP, both blocks of sums, to P and dS.
struct SoftmaxGradient {
  const float* scores = nullptr;
  const float* dprobs = nullptr;
  float factor = 1.0f;  ///< of scores, to base 2
  const GradientRows* rows = nullptr;
  const SeenKeys* seen = nullptr;     ///< null: all
  int64_t key = 0;                    ///< the block's first
  const KeptWeights* kept = nullptr;  ///< null: all
  float inverse_keep = 1.0f;
  std::byte* probs_b = nullptr;    ///< a step of a panel of B, whose k are queries
  std::byte* dscores_b = nullptr;  ///< likewise
  std::byte* dscores_a = nullptr;  ///< a step of a panel of A, whose k are keys
};
void differentiate(const SoftmaxGradient& args);

/// The columns of probs_b and dscores_b, hence of dK^T and dV^T, are keys in this order.
constexpr int64_t key_of_column(int64_t column) { return column % 16 / 4 * 8 + column / 16 * 4 + column % 4; }

/// factor * sums [blocks of 32 columns][32 rows], as bf16 rows of `columns`.
void write_rows(const float* sums, int64_t num_rows, int64_t columns, float factor, Bf16* to, int64_t stride);
/// factor * sums^T: sums [blocks of 32 features][32 columns], whose columns are keys as above.
void write_keys(const float* sums, int64_t num_keys, int64_t head_dim, float factor, Bf16* to,
                int64_t stride);

}  // namespace plimsoll::cpu::bf16
