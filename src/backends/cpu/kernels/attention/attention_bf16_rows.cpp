// Row-wise helpers of bf16 attention: which keys are seen, which weights are kept,
// logarithms of sums.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attention/attention_bf16_rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/attention/attention_bf16_blocks.h"
#include "backends/cpu/kernels/philox-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
}  // namespace

// words[i] of queries [query, query + 32) and keys [key, key + 32); a vector's lanes are queries.
void draw_kept_words(const ops::RandomStream& stream, uint32_t threshold, int64_t query, int64_t key,
                     int64_t tokens, uint32_t* words) {
  const philox::U32 d;
  const philox::Threshold keeps(threshold);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < bf16::kPanel; i += lanes) {
    auto bits = hn::Zero(d);
    for (int64_t j = 0; j < bf16::kPanel; j += 4) {
      const philox::Words random =
          philox::attention_vectors(stream, ops::attention_block(query + i, key + j, tokens));
      for (int64_t n = 0; n < 4; ++n) {
        const auto kept = hn::RebindMask(d, keeps.keeps(random.word[n]));
        bits = hn::Or(bits, hn::IfThenElseZero(kept, hn::Set(d, 1u << (j + n))));
      }
    }
    hn::Store(bits, d, words + i);
  }
}

void log_sums_of_rows(const float* max, const float* sum, int64_t count, float* lse) {
  vectors::for_vectors(count, [&](int64_t i, auto part) HWY_ATTR {
    const auto log = Log(vectors::F32(), vectors::load(sum + i, part));
    vectors::store(hn::MulAdd(vectors::load(max + i, part), vectors::set(0.693147182f), log), lse + i, part);
  });
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace plimsoll::cpu::bf16 {

HWY_EXPORT(draw_kept_words);
HWY_EXPORT(log_sums_of_rows);

namespace {

// Ends of what each row sees, where no causal mask ends it: its document goes on as long as the starts do not
// pass it.
void find_ends(const MaskView& mask, int64_t first, int64_t rows, int32_t* upper) {
  int64_t end = first + rows;
  while (mask.doc_start != nullptr && end < mask.tokens && mask.doc_start[end] < first + rows) ++end;
  if (mask.doc_start == nullptr) end = mask.tokens;
  for (int64_t i = rows; i-- > 0;) {
    upper[i] = static_cast<int32_t>(end);
    if (mask.doc_start != nullptr && mask.doc_start[first + i] == first + i) end = first + i;
    if (mask.window > 0)
      upper[i] = static_cast<int32_t>(std::min(int64_t{upper[i]}, first + i + mask.window));
  }
}

}  // namespace

SeenKeys::SeenKeys(const MaskView& mask, int64_t first, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) {
    lower[i] = std::max(0, mask.lower_key(first + i));
    upper[i] = static_cast<int32_t>(first + i + 1);
  }
  if (!mask.causal) find_ends(mask, first, rows, upper);
  std::fill(lower + rows, lower + kPanel, lower[rows - 1]);
  std::fill(upper + rows, upper + kPanel, upper[rows - 1]);
  min_lower = *std::min_element(lower, lower + kPanel), max_lower = *std::max_element(lower, lower + kPanel);
  min_upper = *std::min_element(upper, upper + kPanel), max_upper = *std::max_element(upper, upper + kPanel);
}

void draw_kept(const AttentionDropout& dropout, const ops::RandomStream& stream, int64_t query, int64_t key,
               int64_t tokens, KeptWeights& kept) {
  HWY_DYNAMIC_DISPATCH(draw_kept_words)(stream, dropout.threshold, query, key, tokens, kept.words);
}

void log_sums(const float* max, const float* sum, int64_t count, float* lse) {
  HWY_DYNAMIC_DISPATCH(log_sums_of_rows)(max, sum, count, lse);
}

}  // namespace plimsoll::cpu::bf16
#endif
