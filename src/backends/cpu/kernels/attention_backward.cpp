// The backward pass of attention: one task per sequence, head and granule of keys. A task holds its keys' dk and dv in
// scratch, and walks the blocks of queries that see them. dq belongs to several tasks (one per granule), dk and dv
// to those of a group of heads: each adds its part in order of granule and of head, after a turn that the one
// before it passes on. Tasks are numbered so that whoever is waited for was claimed earlier, so no wait is for ever.
// See attention_tiles-inl.h for the layout of a tile.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attention_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/attention_tiles-inl.h"
#include "backends/cpu/kernels/attention_turns.h"
#include "backends/cpu/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace attention {
namespace {

constexpr float kLog2E = 1.44269504f;

// One task's scratch. "padded" is padded_head_dim.
struct BackwardState {
  float* queries_t = nullptr;  // [head_dim][kBlock], times scale * log2(e)
  float* douts_t = nullptr;    // [head_dim][kBlock]
  float* queries = nullptr;    // [kBlock][padded], times scale
  float* douts = nullptr;      // [kBlock][padded]
  float* probs = nullptr;      // [kBlock][kBlock], keys x queries: scores, then softmax
  float* dscores = nullptr;    // [kBlock][kBlock]
  float* dqueries_t = nullptr; // [head_dim][kBlock]
  float* keys = nullptr;       // [kGranule][head_dim]
  float* values = nullptr;     // [kGranule][head_dim]
  float* dkeys = nullptr;      // [kGranule][padded]
  float* dvalues = nullptr;    // [kGranule][padded]
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
  const float* out = f.out + head_offset(f.shape, b, h, f.out_token_stride) + block.first * f.out_token_stride;
  const float* dout = args.dout + head_offset(f.shape, b, h, args.dout_token_stride) + block.first * args.dout_token_stride;
  const float* lse = f.lse + (b * f.shape.num_heads + h) * f.shape.tokens + block.first;
  pack_transposed(q, f.q_token_stride, block.rows, head_dim, f.scale * kLog2E, s.queries_t);
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
    s.lse[i] = natural == -std::numeric_limits<float>::infinity() ? -natural : natural * kLog2E;
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

// The two products of a rectangle that contract head_dim: scores and gradient of softmax.
HWY_INLINE void multiply_features(const Rectangle& r, const float* a, int64_t head_dim, const float* b, float* c,
                                  Prefetcher& prefetcher) {
  multiply<false>({.rows = r.key_end - r.key_begin,
                   .vectors = r.vector_end - r.vector_begin,
                   .depth = head_dim,
                   .a = a + r.key_begin * head_dim,
                   .a_stride = head_dim,
                   .b = b + r.vector_begin * kLanes,
                   .b_stride = kBlock,
                   .c = c + r.key_begin * kBlock + r.vector_begin * kLanes,
                   .c_stride = kBlock}, prefetcher);
}

// The two that contract queries: dv and dk.
HWY_INLINE void multiply_queries(const Rectangle& r, const float* a, const float* b, int64_t head_dim, float* c,
                                 Prefetcher& prefetcher) {
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
                   .accumulate = true}, prefetcher);
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
                  .accumulate = true}, prefetcher);
}

// One tile: `key` counts from the start of the sequence, `local` from that of the granule.
HWY_INLINE void backward_tile(const MaskView& mask, const QueryBlock& block, int32_t key, int64_t local,
                              int64_t head_dim, BackwardState& s, Prefetcher& prefetcher) {
  const int num_keys = static_cast<int>(std::min<int64_t>(kBlock, mask.tokens - key));
  const TilePlan plan = plan_tile(mask, block, key, num_keys);
  const float* keys = s.keys + local * head_dim;
  const float* values = s.values + local * head_dim;
  for (int n = 0; n < plan.count; ++n) {
    multiply_features(plan.rectangles[n], keys, head_dim, s.queries_t, s.probs, prefetcher);
    multiply_features(plan.rectangles[n], values, head_dim, s.douts_t, s.dscores, prefetcher);
  }
  if (plan.masked) mask_scores(mask, block, plan, key, s.probs);
  differentiate_softmax(plan, s);
  const int64_t padded = padded_head_dim(head_dim);
  for (int n = 0; n < plan.count; ++n) {
    multiply_queries(plan.rectangles[n], s.probs, s.douts, head_dim, s.dvalues + local * padded, prefetcher);
    multiply_queries(plan.rectangles[n], s.dscores, s.queries, head_dim, s.dkeys + local * padded, prefetcher);
    multiply_keys(plan.rectangles[n], keys, head_dim, s, prefetcher);
  }
}

// What is fetched while `block` is at work: the next block's rows, or dk and dv where it is the last; dq.
HWY_INLINE Prefetcher prefetch_next(const AttentionBackwardArgs& args, const QueryBlock& block, bool last, int64_t b,
                                    int64_t h, int64_t key_begin, int64_t num_keys) {
  const AttentionArgs& f = args.forward;
  const AttentionShape& shape = f.shape;
  Prefetcher prefetcher(shape.head_dim, 2);
  if (last) {
    const int64_t kv_head = h / (shape.num_heads / shape.num_kv_heads);
    prefetcher.add(args.dk + head_offset(shape, b, kv_head, args.dk_token_stride) + key_begin * args.dk_token_stride,
                   args.dk_token_stride, num_keys);
    prefetcher.add(args.dv + head_offset(shape, b, kv_head, args.dv_token_stride) + key_begin * args.dv_token_stride,
                   args.dv_token_stride, num_keys);
  } else {
    const int64_t row = block.first - kBlock;
    prefetcher.add(f.q + head_offset(shape, b, h, f.q_token_stride) + row * f.q_token_stride, f.q_token_stride, kBlock);
    prefetcher.add(args.dout + head_offset(shape, b, h, args.dout_token_stride) + row * args.dout_token_stride,
                   args.dout_token_stride, kBlock);
    prefetcher.add(f.out + head_offset(shape, b, h, f.out_token_stride) + row * f.out_token_stride, f.out_token_stride,
                   kBlock);
  }
  prefetcher.add(args.dq + head_offset(shape, b, h, args.dq_token_stride) + block.first * args.dq_token_stride,
                 args.dq_token_stride, block.rows);
  return prefetcher;
}

// Adds a block's dq in its turn.
HWY_INLINE void write_dqueries(const AttentionBackwardArgs& args, const QueryBlock& block, int64_t b, int64_t h,
                               int64_t granule, int64_t first_granule, const BackwardState& s, const Turns& turns) {
  const AttentionShape& shape = args.forward.shape;
  float* dq = args.dq + head_offset(shape, b, h, args.dq_token_stride) + block.first * args.dq_token_stride;
  auto& turn = turns.of_queries(b, h, block.first / kBlock);
  if (granule == first_granule) {
    transpose<false>(s.dqueries_t, kBlock, shape.head_dim, block.rows, args.forward.scale, dq, args.dq_token_stride);
  } else {
    wait_for_turn(turn, granule);
    transpose<true>(s.dqueries_t, kBlock, shape.head_dim, block.rows, args.forward.scale, dq, args.dq_token_stride);
  }
  pass_turn(turn, granule + 1);
}

// Adds a granule's dk and dv in the turn of head h within its group.
HWY_INLINE void write_dkeys(const AttentionBackwardArgs& args, int64_t b, int64_t h, int64_t granule, int64_t rows,
                            const BackwardState& s, const Turns& turns) {
  const AttentionShape& shape = args.forward.shape;
  const int64_t group = shape.num_heads / shape.num_kv_heads, kv_head = h / group, begin = granule * kGranule;
  const int64_t head_dim = shape.head_dim, padded = padded_head_dim(head_dim);
  float* dk = args.dk + head_offset(shape, b, kv_head, args.dk_token_stride) + begin * args.dk_token_stride;
  float* dv = args.dv + head_offset(shape, b, kv_head, args.dv_token_stride) + begin * args.dv_token_stride;
  auto& turn = turns.of_keys(b, kv_head, granule);
  if (h % group == 0) {
    copy_rows<false>(s.dkeys, padded, rows, head_dim, 1.0f, dk, args.dk_token_stride);
    copy_rows<false>(s.dvalues, padded, rows, head_dim, 1.0f, dv, args.dv_token_stride);
  } else {
    wait_for_turn(turn, h % group);
    copy_rows<true>(s.dkeys, padded, rows, head_dim, 1.0f, dk, args.dk_token_stride);
    copy_rows<true>(s.dvalues, padded, rows, head_dim, 1.0f, dv, args.dv_token_stride);
  }
  pass_turn(turn, h % group + 1);
}

// Packs a granule's keys and values and clears what is summed into.
HWY_INLINE BackwardState load_granule(const AttentionArgs& f, int64_t b, int64_t kv_head, int64_t begin, int64_t rows,
                                      float* scratch) {
  const int64_t head_dim = f.shape.head_dim, padded = padded_head_dim(head_dim);
  BackwardState s = carve(scratch, head_dim);
  copy_rows<false>(f.k + head_offset(f.shape, b, kv_head, f.k_token_stride) + begin * f.k_token_stride,
                   f.k_token_stride, rows, head_dim, 1.0f, s.keys, head_dim);
  copy_rows<false>(f.v + head_offset(f.shape, b, kv_head, f.v_token_stride) + begin * f.v_token_stride,
                   f.v_token_stride, rows, head_dim, 1.0f, s.values, head_dim);
  std::fill(s.dkeys, s.dkeys + padded * rows, 0.0f);
  std::fill(s.dvalues, s.dvalues + padded * rows, 0.0f);
  if (padded != head_dim) {
    std::fill(s.queries, s.queries + padded * kBlock, 0.0f);
    std::fill(s.douts, s.douts + padded * kBlock, 0.0f);
  }
  return s;
}

void backward_granule(const AttentionBackwardArgs& args, int64_t b, int64_t h, int64_t granule, float* scratch,
                      const Turns& turns) {
  const AttentionShape& shape = args.forward.shape;
  const MaskView mask = mask_of(args.forward, b);
  const int64_t begin = granule * kGranule, end = std::min(begin + kGranule, shape.tokens);
  BackwardState s = load_granule(args.forward, b, h / (shape.num_heads / shape.num_kv_heads), begin, end - begin, scratch);
  // Downwards, so that the next granule's task, which needs fewer blocks, follows this one closely.
  const int64_t lowest = mask.causal ? begin / kBlock : 0;
  for (int64_t index = num_blocks(shape.tokens) - 1; index >= lowest; --index) {
    const QueryBlock block = make_query_block(mask, index);
    const int64_t first_granule = std::clamp(block.min_lower_key, 0, block.first) / kGranule;
    if (granule < first_granule) continue;
    Prefetcher prefetcher = prefetch_next(args, block, index == lowest, b, h, begin, end - begin);
    load_block(args, block, b, h, s);
    for (int64_t key = begin; key < end; key += kBlock)
      backward_tile(mask, block, static_cast<int32_t>(key), key - begin, shape.head_dim, s, prefetcher);
    write_dqueries(args, block, b, h, granule, first_granule, s, turns);
  }
  write_dkeys(args, b, h, granule, end - begin, s, turns);
}

}  // namespace
}  // namespace attention

void attention_backward_granule(const AttentionBackwardArgs& args, int64_t b, int64_t h, int64_t granule,
                                float* scratch, const Turns& turns) {
  attention::backward_granule(args, b, h, granule, scratch, turns);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/check.h"

namespace plimsoll::cpu {

HWY_EXPORT(attention_backward_granule);

namespace {

// As carved from a thread's scratch.
int64_t backward_scratch_floats(int64_t head_dim) {
  const int64_t padded = padded_head_dim(head_dim);
  return (3 * head_dim + 2 * padded + 2 * kBlock) * kBlock + 2 * (head_dim + padded) * kGranule;
}

}  // namespace

int64_t attention_backward_workspace_bytes(const AttentionShape& shape, int num_threads) {
  return num_threads * backward_scratch_floats(shape.head_dim) * int64_t{sizeof(float)} + Turns::bytes(shape);
}

void attention_backward(const AttentionBackwardArgs& args, ThreadPool& pool, std::span<std::byte> workspace) {
  check_attention(args.forward);
  const AttentionShape& s = args.forward.shape;
  PLIMSOLL_CHECK(static_cast<int64_t>(workspace.size()) >= attention_backward_workspace_bytes(s, pool.num_threads()),
                 "attention_backward: workspace");
  auto* scratch = reinterpret_cast<float*>(workspace.data());
  const int64_t stride = backward_scratch_floats(s.head_dim), heads = s.batch * s.num_heads;
  const Turns turns(s, workspace.data() + pool.num_threads() * stride * int64_t{sizeof(float)});
  const auto kernel = HWY_DYNAMIC_DISPATCH(attention_backward_granule);
  // Under a causal mask the first granule is seen by the most queries, so it goes first.
  pool.run(heads * num_granules(s.tokens), [&](int64_t tile, int thread) {
    const int64_t head = tile % heads;
    kernel(args, head / s.num_heads, head % s.num_heads, tile / heads, scratch + thread * stride, turns);
  });
}

}  // namespace plimsoll::cpu
#endif
