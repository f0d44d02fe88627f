// One tile of attention's backward pass: the scores once more, then five products and the softmax's gradient
// between them, all in one task's scratch. Compiled once per target.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_BACKWARD_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_BACKWARD_TILE_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_BACKWARD_TILE_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_BACKWARD_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "backends/cpu/kernels/attention/attention_layout.h"
#include "backends/cpu/kernels/attention/attention_products-inl.h"
#include "backends/cpu/kernels/attention/attention_tiles-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace attention {
// One task's scratch. "padded" is padded_head_dim.
struct BackwardState {
  float* queries_t = nullptr;       // [head_dim][kBlock], times scale * log2(e)
  float* douts_t = nullptr;         // [head_dim][kBlock]
  float* queries = nullptr;         // [kBlock][padded], times scale
  float* douts = nullptr;           // [kBlock][padded]
  float* probs = nullptr;           // [kBlock][kBlock], keys x queries: scores, then softmax
  float* dscores = nullptr;         // [kBlock][kBlock]
  float* dqueries_t = nullptr;      // [head_dim][kBlock]
  float* keys = nullptr;            // [kGranule][head_dim]
  float* values = nullptr;          // [kGranule][head_dim]
  float* dkeys = nullptr;           // [kGranule][padded]
  float* dvalues = nullptr;         // [kGranule][padded]
  alignas(64) float lse[kBlock];    // in base 2
  alignas(64) float delta[kBlock];  // sum over head_dim of dout * out
};

HWY_INLINE BackwardState carve(float* scratch, int64_t head_dim) {
  const int64_t padded = padded_head_dim(head_dim);
  BackwardState s;
  float* next = scratch;
  const auto take = [&next](int64_t floats) { return std::exchange(next, next + floats); };
  s.queries_t = take(head_dim * kBlock);
  s.douts_t = take(head_dim * kBlock);
  s.queries = take(padded * kBlock);
  s.douts = take(padded * kBlock);
  s.probs = take(kBlock * kBlock);
  s.dscores = take(kBlock * kBlock);
  s.dqueries_t = take(head_dim * kBlock);
  s.keys = take(head_dim * kGranule);
  s.values = take(head_dim * kGranule);
  s.dkeys = take(padded * kGranule);
  s.dvalues = take(padded * kGranule);
  return s;
}

HWY_INLINE float dot(const float* a, const float* b, int64_t n) {
  const Tag d;
  Vector sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

// Everything of a block of queries that its tiles read.
HWY_INLINE void load_block(const AttentionBackwardArgs& args, const QueryBlock& block, int64_t b, int64_t h,
                           BackwardState& s) {
  const AttentionArgs& f = args.forward;
  const int64_t head_dim = f.shape.head_dim, padded = padded_head_dim(head_dim);
  const float* q = f.q + head_offset(f.shape, b, h, f.q_token_stride) + block.first * f.q_token_stride;
  const float* out =
      f.out + head_offset(f.shape, b, h, f.out_token_stride) + block.first * f.out_token_stride;
  const float* dout =
      args.dout + head_offset(f.shape, b, h, args.dout_token_stride) + block.first * args.dout_token_stride;
  const float* lse = f.lse + (b * f.shape.num_heads + h) * f.shape.tokens + block.first;
  pack_transposed(q, f.q_token_stride, block.rows, head_dim, f.scale * vector_math::kLog2E, s.queries_t);
  pack_transposed(dout, args.dout_token_stride, block.rows, head_dim, 1.0f, s.douts_t);
  copy_rows<false>(q, f.q_token_stride, block.rows, head_dim, f.scale, s.queries, padded);
  copy_rows<false>(dout, args.dout_token_stride, block.rows, head_dim, 1.0f, s.douts, padded);
  std::fill(s.queries + block.rows * padded, s.queries + kBlock * padded, 0.0f);
  std::fill(s.douts + block.rows * padded, s.douts + kBlock * padded, 0.0f);
  std::fill(s.dqueries_t, s.dqueries_t + head_dim * kBlock, 0.0f);
  for (int i = 0; i < kBlock; ++i) {
    const bool real = i < block.rows;
    s.delta[i] = real ? dot(dout + i * args.dout_token_stride, out + i * f.out_token_stride, head_dim) : 0.0f;
    // A row that sees nothing has lse = -inf; +inf makes its probabilities zero.
    const float natural = real ? lse[i] : 0.0f;
    s.lse[i] = natural == -std::numeric_limits<float>::infinity() ? -natural : natural * vector_math::kLog2E;
  }
}

// probs: scores -> softmax; dscores: gradient of softmax -> gradient of scores.
HWY_INLINE void differentiate_softmax(const TilePlan& plan, BackwardState& s) {
  const Tag d;
  for (int n = 0; n < plan.count; ++n) {
    const Rectangle& rect = plan.rectangles[n];
    for (int v = rect.vector_begin; v < rect.vector_end; ++v) {
      const Vector lse = hn::Load(d, s.lse + v * kLanes), delta = hn::Load(d, s.delta + v * kLanes);
      for (int k = rect.key_begin; k < rect.key_end; ++k) {
        float* prob = s.probs + k * kBlock + v * kLanes;
        float* dscore = s.dscores + k * kBlock + v * kLanes;
        const Vector p = Exp2NonPositive(d, hn::Sub(hn::Load(d, prob), lse));
        hn::Store(p, d, prob);
        hn::Store(hn::Mul(p, hn::Sub(hn::Load(d, dscore), delta)), d, dscore);
      }
    }
  }
}

// The same where weights were dropped: what reaches dv is what was kept, and what comes back through it too.
HWY_INLINE void differentiate_dropped(const TilePlan& plan, const TileDropout& drop, int32_t query,
                                      int32_t key, BackwardState& s) {
  const Tag d;
  const Vector inverse_keep = hn::Set(d, drop.inverse_keep);
  for_kept(plan, drop, query, key, [&](int at, int v, hn::Mask<Tag> mask) HWY_ATTR {
    const Vector lse = hn::Load(d, s.lse + v * kLanes), delta = hn::Load(d, s.delta + v * kLanes);
    const Vector kept = hn::IfThenElseZero(mask, inverse_keep);
    const Vector p = Exp2NonPositive(d, hn::Sub(hn::Load(d, s.probs + at), lse));
    hn::Store(hn::Mul(p, kept), d, s.probs + at);
    hn::Store(hn::Mul(p, hn::MulSub(kept, hn::Load(d, s.dscores + at), delta)), d, s.dscores + at);
  });
}

// The two products of a rectangle that contract head_dim: scores and gradient of softmax.
HWY_INLINE void multiply_features(const Rectangle& r, const float* a, int64_t head_dim, const float* b,
                                  float* c, Prefetcher& prefetcher) {
  multiply<false>({.rows = r.key_end - r.key_begin,
                   .vectors = r.vector_end - r.vector_begin,
                   .depth = head_dim,
                   .a = a + r.key_begin * head_dim,
                   .a_stride = head_dim,
                   .b = b + r.vector_begin * kLanes,
                   .b_stride = kBlock,
                   .c = c + r.key_begin * kBlock + r.vector_begin * kLanes,
                   .c_stride = kBlock},
                  prefetcher);
}

// The two that contract queries: dv and dk.
HWY_INLINE void multiply_queries(const Rectangle& r, const float* a, const float* b, int64_t head_dim,
                                 float* c, Prefetcher& prefetcher) {
  const int64_t padded = padded_head_dim(head_dim);
  multiply<false>({.rows = r.key_end - r.key_begin,
                   .vectors = static_cast<int>((head_dim + kLanes - 1) / kLanes),
                   .depth = (r.vector_end - r.vector_begin) * kLanes,
                   .a = a + r.key_begin * kBlock + r.vector_begin * kLanes,
                   .a_stride = kBlock,
                   .b = b + r.vector_begin * kLanes * padded,
                   .b_stride = padded,
                   .c = c + r.key_begin * padded,
                   .c_stride = padded,
                   .accumulate = true},
                  prefetcher);
}

// The one that contracts keys: dq.
HWY_INLINE void multiply_keys(const Rectangle& r, const float* keys, int64_t head_dim, BackwardState& s,
                              Prefetcher& prefetcher) {
  multiply<true>({.rows = static_cast<int>(head_dim),
                  .vectors = r.vector_end - r.vector_begin,
                  .depth = r.key_end - r.key_begin,
                  .a = keys + r.key_begin * head_dim,
                  .a_stride = head_dim,
                  .b = s.dscores + r.key_begin * kBlock + r.vector_begin * kLanes,
                  .b_stride = kBlock,
                  .c = s.dqueries_t + r.vector_begin * kLanes,
                  .c_stride = kBlock,
                  .accumulate = true},
                 prefetcher);
}

// One tile: `key` counts from the start of the sequence, `local` from that of the granule.
// `drop` may be null.
HWY_INLINE void backward_tile(const MaskView& mask, const QueryBlock& block, int32_t key, int64_t local,
                              int64_t head_dim, const TileDropout* drop, BackwardState& s,
                              Prefetcher& prefetcher) {
  const int num_keys = static_cast<int>(std::min<int64_t>(kBlock, mask.tokens - key));
  const TilePlan plan = plan_tile(mask, block, key, num_keys);
  const float* keys = s.keys + local * head_dim;
  const float* values = s.values + local * head_dim;
  for (int n = 0; n < plan.count; ++n) {
    multiply_features(plan.rectangles[n], keys, head_dim, s.queries_t, s.probs, prefetcher);
    multiply_features(plan.rectangles[n], values, head_dim, s.douts_t, s.dscores, prefetcher);
  }
  if (plan.masked) mask_scores(mask, block, plan, key, s.probs);
  if (drop != nullptr)
    differentiate_dropped(plan, *drop, block.first, key, s);
  else
    differentiate_softmax(plan, s);
  const int64_t padded = padded_head_dim(head_dim);
  for (int n = 0; n < plan.count; ++n) {
    multiply_queries(plan.rectangles[n], s.probs, s.douts, head_dim, s.dvalues + local * padded, prefetcher);
    multiply_queries(plan.rectangles[n], s.dscores, s.queries, head_dim, s.dkeys + local * padded,
                     prefetcher);
    multiply_keys(plan.rectangles[n], keys, head_dim, s, prefetcher);
  }
}

}  // namespace attention
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
