// The forward pass of attention: one task per sequence, head and granule of queries, over tiles of keys with
// an online softmax. See attention_tiles-inl.h for the layout of a tile.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attention/attention_forward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/attention/attention.h"
#include "backends/cpu/kernels/attention/attention_tiles-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace attention {
namespace {

// Of the prefetcher: twice the backward pass's, for a tile has fewer products to spread it over.
constexpr int64_t kLinesPerStep = 24;
constexpr float kLn2 = 0.693147182f;
// Stands for the largest score of a row that has seen none: far below any score, and no NaN comes of -inf
// minus it.
constexpr float kNothingSeen = -1e38f;

// The running state of a block of queries; scores are in base 2.
struct ForwardState {
  alignas(64) float max[kBlock];
  alignas(64) float sum[kBlock];
  float* queries = nullptr;  // [head_dim][kBlock], scaled
  float* scores = nullptr;   // [kBlock][kBlock], keys x queries
  float* out = nullptr;      // [head_dim][kBlock], not yet divided by sum
};

// Takes the maximum over a tile into the running one; true if any row's rose. `factor` rescales what was
// summed before.
HWY_INLINE bool raise_max(const TilePlan& plan, int vectors, ForwardState& s, float* factor) {
  const Tag d;
  bool raised = false;
  for (int v = 0; v < vectors; ++v) {
    const Vector old = hn::Load(d, s.max + v * kLanes);
    Vector even = old, odd = old;
    for (int n = 0; n < plan.count; ++n) {
      const Rectangle& rect = plan.rectangles[n];
      if (v < rect.vector_begin || v >= rect.vector_end) continue;
      const float* p = s.scores + v * kLanes;
      int k = rect.key_begin;
      for (; k + 1 < rect.key_end; k += 2) {
        even = hn::Max(even, hn::Load(d, p + k * kBlock));
        odd = hn::Max(odd, hn::Load(d, p + (k + 1) * kBlock));
      }
      if (k < rect.key_end) even = hn::Max(even, hn::Load(d, p + k * kBlock));
    }
    const Vector now = hn::Max(even, odd);
    raised |= !hn::AllTrue(d, hn::Eq(now, old));
    hn::Store(now, d, s.max + v * kLanes);
    hn::Store(Exp2NonPositive(d, hn::Sub(old, now)), d, factor + v * kLanes);
  }
  return raised;
}

// scores -> 2^(scores - max), summed into the running sums.
HWY_INLINE void exponentiate(const TilePlan& plan, ForwardState& s) {
  const Tag d;
  for (int n = 0; n < plan.count; ++n) {
    const Rectangle& rect = plan.rectangles[n];
    for (int v = rect.vector_begin; v < rect.vector_end; ++v) {
      const Vector max = hn::Load(d, s.max + v * kLanes);
      Vector sum = hn::Load(d, s.sum + v * kLanes);
      for (int k = rect.key_begin; k < rect.key_end; ++k) {
        float* p = s.scores + k * kBlock + v * kLanes;
        const Vector e = Exp2NonPositive(d, hn::Sub(hn::Load(d, p), max));
        hn::Store(e, d, p);
        sum = hn::Add(sum, e);
      }
      hn::Store(sum, d, s.sum + v * kLanes);
    }
  }
}

HWY_INLINE void rescale(int vectors, int64_t head_dim, const float* factor, ForwardState& s) {
  const Tag d;
  for (int v = 0; v < vectors; ++v) {
    const Vector f = hn::Load(d, factor + v * kLanes);
    float* sum = s.sum + v * kLanes;
    hn::Store(hn::Mul(hn::Load(d, sum), f), d, sum);
    for (int64_t c = 0; c < head_dim; ++c) {
      float* p = s.out + c * kBlock + v * kLanes;
      hn::Store(hn::Mul(hn::Load(d, p), f), d, p);
    }
  }
}

// Zeroes what is dropped; the sums have it all the same, and finish() makes up for it.
HWY_INLINE void drop_weights(const TilePlan& plan, const TileDropout& drop, int32_t query, int32_t key,
                             float* weights) {
  const Tag d;
  for_kept(plan, drop, query, key, [=](int at, int /*vector*/, hn::Mask<Tag> kept) HWY_ATTR {
    hn::Store(hn::IfThenElseZero(kept, hn::Load(d, weights + at)), d, weights + at);
  });
}

// One tile of keys: scores, softmax, values. `drop` may be null.
HWY_INLINE void forward_tile(const AttentionArgs& args, const MaskView& mask, const QueryBlock& block,
                             int32_t key, const float* k, const float* v, const TileDropout* drop,
                             ForwardState& s, Prefetcher& prefetcher) {
  const int num_keys = static_cast<int>(std::min<int64_t>(kBlock, mask.tokens - key));
  const TilePlan plan = plan_tile(mask, block, key, num_keys);
  if (plan.count == 0) return;
  const int64_t head_dim = args.shape.head_dim;
  for (int n = 0; n < plan.count; ++n) {
    const Rectangle& r = plan.rectangles[n];
    multiply<false>({.rows = r.key_end - r.key_begin,
                     .vectors = r.vector_end - r.vector_begin,
                     .depth = head_dim,
                     .a = k + (key + r.key_begin) * args.k_token_stride,
                     .a_stride = args.k_token_stride,
                     .b = s.queries + r.vector_begin * kLanes,
                     .b_stride = kBlock,
                     .c = s.scores + r.key_begin * kBlock + r.vector_begin * kLanes,
                     .c_stride = kBlock},
                    prefetcher);
  }
  if (plan.masked) mask_scores(mask, block, plan, key, s.scores);
  alignas(64) float factor[kBlock];
  if (raise_max(plan, block.vectors, s, factor)) rescale(block.vectors, head_dim, factor, s);
  exponentiate(plan, s);
  if (drop != nullptr) drop_weights(plan, *drop, block.first, key, s.scores);
  for (int n = 0; n < plan.count; ++n) {
    const Rectangle& r = plan.rectangles[n];
    multiply<true>({.rows = static_cast<int>(head_dim),
                    .vectors = r.vector_end - r.vector_begin,
                    .depth = r.key_end - r.key_begin,
                    .a = v + (key + r.key_begin) * args.v_token_stride,
                    .a_stride = args.v_token_stride,
                    .b = s.scores + r.key_begin * kBlock + r.vector_begin * kLanes,
                    .b_stride = kBlock,
                    .c = s.out + r.vector_begin * kLanes,
                    .c_stride = kBlock,
                    .accumulate = true},
                   prefetcher);
  }
}

// Divides by the sums and by what dropout keeps, and writes out and, where it is wanted, lse.
HWY_INLINE void finish(const QueryBlock& block, int64_t head_dim, float inverse_keep, ForwardState& s,
                       float* out, int64_t out_stride, float* lse) {
  const Tag d;
  alignas(64) float inverse[kBlock];
  alignas(64) float log_sum[kBlock];
  for (int v = 0; v < block.vectors; ++v) {
    const Vector sum = hn::Load(d, s.sum + v * kLanes);
    const Vector zero = hn::Zero(d);
    const Vector inv = hn::Div(hn::Set(d, inverse_keep), sum);
    hn::Store(hn::IfThenElse(hn::Eq(sum, zero), zero, inv), d, inverse + v * kLanes);
    const Vector max = hn::Load(d, s.max + v * kLanes);
    hn::Store(hn::MulAdd(max, hn::Set(d, kLn2), Log(d, sum)), d, log_sum + v * kLanes);
  }
  rescale(block.vectors, head_dim, inverse, s);
  transpose<false>(s.out, kBlock, head_dim, block.rows, 1.0f, out, out_stride);
  if (lse != nullptr) std::copy(log_sum, log_sum + block.rows, lse);
}

// Keys and values of one tile, for the block of queries at `first`.
HWY_INLINE void prefetch_tile(const AttentionArgs& args, const AttentionTask& task, int64_t key,
                              Prefetcher& prefetcher) {
  const AttentionShape& shape = args.shape;
  const int64_t kv_head = task.h / (shape.num_heads / shape.num_kv_heads),
                rows = std::min<int64_t>(kBlock, cached_or_own_keys(args) - key);
  prefetcher.add(
      args.k + key_head_offset(args, task.b, kv_head, args.k_token_stride) + key * args.k_token_stride,
      args.k_token_stride, rows);
  prefetcher.add(
      args.v + key_head_offset(args, task.b, kv_head, args.v_token_stride) + key * args.v_token_stride,
      args.v_token_stride, rows);
}

HWY_INLINE void prefetch_queries(const AttentionArgs& args, const AttentionTask& task, int64_t first,
                                 Prefetcher& prefetcher) {
  prefetcher.add(
      args.q + head_offset(args.shape, task.b, task.h, args.q_token_stride) + first * args.q_token_stride,
      args.q_token_stride, std::min<int64_t>(kBlock, args.shape.tokens - first));
}

void forward_block(const AttentionArgs& args, const AttentionTask& task, const AttentionTask& next,
                   const QueryBlock& block, const MaskView& mask, Prefetcher& prefetcher, float* scratch) {
  const AttentionShape& shape = args.shape;
  const int64_t b = task.b, h = task.h, head_dim = shape.head_dim;
  const int64_t kv_head = h / (shape.num_heads / shape.num_kv_heads);
  const float* k = args.k + key_head_offset(args, b, kv_head, args.k_token_stride);
  const float* v = args.v + key_head_offset(args, b, kv_head, args.v_token_stride);
  const int64_t token = block.first - mask.start;  // of the sequence's own
  const float* q = args.q + head_offset(shape, b, h, args.q_token_stride) + token * args.q_token_stride;
  float* out = args.out + head_offset(shape, b, h, args.out_token_stride) + token * args.out_token_stride;
  ForwardState s;
  s.queries = scratch;
  s.out = s.queries + head_dim * kBlock;
  s.scores = s.out + head_dim * kBlock;
  std::fill(s.max, s.max + kBlock, kNothingSeen);
  std::fill(s.sum, s.sum + kBlock, 0.0f);
  std::fill(s.out, s.out + head_dim * kBlock, 0.0f);
  pack_transposed(q, args.q_token_stride, block.rows, head_dim, args.scale * vector_math::kLog2E, s.queries);
  const TileDropout drop{dropout_stream(args.dropout, b, h), args.dropout.threshold,
                         args.dropout.inverse_keep, shape.tokens};
  const bool first_of_task = token == task.granule * kGranule;
  const int64_t following = block.first + kBlock, following_token = token + kBlock,
                end = mask.end_of_keys(block.first + block.rows - 1);
  for (int64_t key = std::max(0, block.min_lower_key) / kBlock * kBlock; key < end; key += kBlock) {
    if (key + kBlock >= end) {
      prefetcher.add(out, args.out_token_stride, block.rows);
      const bool last = following_token >= mask.queries || following_token % kGranule == 0;
      prefetch_queries(args, last ? next : task, last ? next.granule * kGranule : following_token,
                       prefetcher);
      prefetch_tile(args, last ? next : task, last ? 0 : mask.causal ? following : key, prefetcher);
    } else if (first_of_task) {
      prefetch_tile(args, task, key + kBlock, prefetcher);
    }
    forward_tile(args, mask, block, static_cast<int32_t>(key), k, v, args.dropout.on ? &drop : nullptr, s,
                 prefetcher);
  }
  finish(block, head_dim, args.dropout.inverse_keep, s, out, args.out_token_stride,
         args.lse == nullptr ? nullptr : args.lse + (b * shape.num_heads + h) * shape.tokens + token);
}

}  // namespace
}  // namespace attention

void attention_forward_task(const AttentionArgs& args, const AttentionTask& task, const AttentionTask& next,
                            float* scratch) {
  const MaskView mask = mask_of(args, task.b);
  const int64_t begin = task.granule * kGranule / kBlock;
  const int64_t end = std::min(begin + kGranule / kBlock, num_blocks(args.shape.tokens));
  attention::Prefetcher prefetcher(args.shape.head_dim, attention::kLinesPerStep);
  for (int64_t index = begin; index < end; ++index)
    attention::forward_block(args, task, next, attention::make_query_block(mask, index), mask, prefetcher,
                             scratch);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/check.h"

namespace plimsoll::cpu {

HWY_EXPORT(attention_forward_task);

namespace {
// Queries and result transposed, and a tile of scores.
int64_t forward_scratch_floats(int64_t head_dim) { return (2 * head_dim + kBlock) * kBlock; }
}  // namespace

int64_t attention_forward_workspace_bytes(const AttentionShape& shape, int num_threads) {
  return num_threads * forward_scratch_floats(shape.head_dim) * int64_t{sizeof(float)};
}

void attention_forward(const AttentionArgs& args, ThreadPool& pool, std::span<std::byte> workspace) {
  check_attention(args);
  const AttentionShape& s = args.shape;
  PLIMSOLL_CHECK(
      static_cast<int64_t>(workspace.size()) >= attention_forward_workspace_bytes(s, pool.num_threads()),
      "attention_forward: workspace");
  auto* scratch = reinterpret_cast<float*>(workspace.data());
  const int64_t stride = forward_scratch_floats(s.head_dim), granules = num_granules(s.tokens);
  const int64_t heads = s.batch * s.num_heads;
  const auto kernel = HWY_DYNAMIC_DISPATCH(attention_forward_task);
  // The last granule of queries sees the most keys, so it goes first.
  const auto task_of = [&](int64_t tile) {
    const int64_t head = tile % heads;
    return AttentionTask{
        .b = head / s.num_heads, .h = head % s.num_heads, .granule = granules - 1 - tile / heads};
  };
  pool.run(heads * granules, [&](int64_t tile, int thread) {
    // A guess at what this thread claims next; it only steers prefetching.
    const int64_t next = std::min(tile + pool.num_threads(), heads * granules - 1);
    kernel(args, task_of(tile), task_of(next), scratch + thread * stride);
  });
}

}  // namespace plimsoll::cpu
#endif
