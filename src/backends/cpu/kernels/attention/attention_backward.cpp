// The backward pass of attention: one task per sequence, head and granule of keys. A task holds its keys' dk
// and dv in scratch, and walks the blocks of queries that see them. dq belongs to several tasks (one per
// granule), dk and dv to those of a group of heads: each adds its part in order of granule and of head, after
// a turn that the one before it passes on. Tasks are numbered so that whoever is waited for was claimed
// earlier, so no wait is for ever. See attention_tiles-inl.h for the layout of a tile.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attention/attention_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/attention/attention.h"
#include "backends/cpu/kernels/attention/attention_backward_tile-inl.h"
#include "backends/cpu/kernels/attention/attention_turns.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace attention {
namespace {

// Of the prefetcher; the best of 8, 12, 16 and 24 on the shapes of attention_bench.
constexpr int64_t kLinesPerStep = 12;

// Rows [first, first + rows) of a head in a [batch, tokens, heads, head_dim] operand.
HWY_INLINE void prefetch_rows(const AttentionShape& shape, int64_t b, int64_t head, const float* data,
                              int64_t stride, int64_t first, int64_t rows, Prefetcher& prefetcher) {
  prefetcher.add(data + head_offset(shape, b, head, stride) + first * stride, stride,
                 std::min(rows, shape.tokens - first));
}

// What load_block reads.
HWY_INLINE void prefetch_block(const AttentionBackwardArgs& args, const AttentionTask& task, int64_t first,
                               Prefetcher& prefetcher) {
  const AttentionArgs& f = args.forward;
  prefetch_rows(f.shape, task.b, task.h, f.q, f.q_token_stride, first, kBlock, prefetcher);
  prefetch_rows(f.shape, task.b, task.h, args.dout, args.dout_token_stride, first, kBlock, prefetcher);
  prefetch_rows(f.shape, task.b, task.h, f.out, f.out_token_stride, first, kBlock, prefetcher);
}

// What a task writes at its end.
HWY_INLINE void prefetch_dkeys(const AttentionBackwardArgs& args, const AttentionTask& task,
                               Prefetcher& prefetcher) {
  const AttentionShape& shape = args.forward.shape;
  const int64_t kv_head = task.h / (shape.num_heads / shape.num_kv_heads), first = task.granule * kGranule;
  prefetch_rows(shape, task.b, kv_head, args.dk, args.dk_token_stride, first, kGranule, prefetcher);
  prefetch_rows(shape, task.b, kv_head, args.dv, args.dv_token_stride, first, kGranule, prefetcher);
}

// What a task reads first.
HWY_INLINE void prefetch_task(const AttentionBackwardArgs& args, const AttentionTask& task,
                              Prefetcher& prefetcher) {
  const AttentionArgs& f = args.forward;
  const int64_t kv_head = task.h / (f.shape.num_heads / f.shape.num_kv_heads),
                first = task.granule * kGranule;
  prefetch_rows(f.shape, task.b, kv_head, f.k, f.k_token_stride, first, kGranule, prefetcher);
  prefetch_rows(f.shape, task.b, kv_head, f.v, f.v_token_stride, first, kGranule, prefetcher);
  prefetch_block(args, task, first, prefetcher);
}

// Adds a block's dq in its turn.
HWY_INLINE void write_dqueries(const AttentionBackwardArgs& args, const QueryBlock& block, int64_t b,
                               int64_t h, int64_t granule, int64_t first_granule, const BackwardState& s,
                               const Turns& turns) {
  const AttentionShape& shape = args.forward.shape;
  float* dq = args.dq + head_offset(shape, b, h, args.dq_token_stride) + block.first * args.dq_token_stride;
  auto& turn = turns.of_queries(b, h, block.first / kBlock);
  if (granule == first_granule) {
    transpose<false>(s.dqueries_t, kBlock, shape.head_dim, block.rows, args.forward.scale, dq,
                     args.dq_token_stride);
  } else {
    wait_for_turn(turn, granule);
    transpose<true>(s.dqueries_t, kBlock, shape.head_dim, block.rows, args.forward.scale, dq,
                    args.dq_token_stride);
  }
  pass_turn(turn, granule + 1);
}

// Adds a granule's dk and dv in the turn of head h within its group.
HWY_INLINE void write_dkeys(const AttentionBackwardArgs& args, int64_t b, int64_t h, int64_t granule,
                            int64_t rows, const BackwardState& s, const Turns& turns) {
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
HWY_INLINE BackwardState load_granule(const AttentionArgs& f, int64_t b, int64_t kv_head, int64_t begin,
                                      int64_t rows, float* scratch) {
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

void backward_task(const AttentionBackwardArgs& args, const AttentionTask& task, const AttentionTask& next,
                   float* scratch, const Turns& turns) {
  const AttentionShape& shape = args.forward.shape;
  const int64_t b = task.b, h = task.h, granule = task.granule, group = shape.num_heads / shape.num_kv_heads;
  const MaskView mask = mask_of(args.forward, b);
  const int64_t begin = granule * kGranule, end = std::min(begin + kGranule, shape.tokens);
  const int64_t blocks = num_blocks(shape.tokens);
  BackwardState s = load_granule(args.forward, b, h / group, begin, end - begin, scratch);
  Prefetcher prefetcher(shape.head_dim, kLinesPerStep);
  const AttentionDropout& dropout = args.forward.dropout;
  const TileDropout drop{dropout_stream(dropout, b, h), dropout.threshold, dropout.inverse_keep,
                         shape.tokens};
  const int64_t lowest = mask.lower_query(begin) / kBlock;
  for (int64_t index = lowest; index < blocks; ++index) {
    const QueryBlock block = make_query_block(mask, index);
    const int64_t first_granule = std::clamp(block.min_lower_key, 0, block.first) / kGranule;
    const int64_t last_granule = (mask.end_of_keys(block.first + block.rows - 1) - 1) / kGranule;
    if (granule < first_granule || granule > last_granule) continue;
    prefetch_rows(shape, b, h, args.dq, args.dq_token_stride, block.first, kBlock, prefetcher);
    if (index + 1 < blocks)
      prefetch_block(args, task, block.first + kBlock, prefetcher);
    else
      prefetch_task(args, next, prefetcher);
    if (index + 2 == std::max(blocks, lowest + 2)) prefetch_dkeys(args, task, prefetcher);
    load_block(args, block, b, h, s);
    for (int64_t key = begin; key < end; key += kBlock)
      backward_tile(mask, block, static_cast<int32_t>(key), key - begin, shape.head_dim,
                    dropout.on ? &drop : nullptr, s, prefetcher);
    write_dqueries(args, block, b, h, granule, first_granule, s, turns);
  }
  write_dkeys(args, b, h, granule, end - begin, s, turns);
}

}  // namespace
}  // namespace attention

void attention_backward_task(const AttentionBackwardArgs& args, const AttentionTask& task,
                             const AttentionTask& next, float* scratch, const Turns& turns) {
  attention::backward_task(args, task, next, scratch, turns);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/check.h"

namespace plimsoll::cpu {

HWY_EXPORT(attention_backward_task);

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
  PLIMSOLL_CHECK(
      static_cast<int64_t>(workspace.size()) >= attention_backward_workspace_bytes(s, pool.num_threads()),
      "attention_backward: workspace");
  auto* scratch = reinterpret_cast<float*>(workspace.data());
  const int64_t stride = backward_scratch_floats(s.head_dim), heads = s.batch * s.num_heads;
  const Turns turns(s, workspace.data() + pool.num_threads() * stride * int64_t{sizeof(float)});
  const auto kernel = HWY_DYNAMIC_DISPATCH(attention_backward_task);
  const int64_t num_tasks = heads * num_granules(s.tokens);
  // Under a causal mask the first granule is seen by the most queries, so it goes first.
  const auto task_of = [&](int64_t tile) {
    const int64_t head = tile % heads;
    return AttentionTask{.b = head / s.num_heads, .h = head % s.num_heads, .granule = tile / heads};
  };
  pool.run(num_tasks, [&](int64_t tile, int thread) {
    // A guess at what this thread claims next; it only steers prefetching.
    const int64_t next = std::min(tile + pool.num_threads(), num_tasks - 1);
    kernel(args, task_of(tile), task_of(next), scratch + thread * stride, turns);
  });
}

}  // namespace plimsoll::cpu
#endif
