// The backward pass of attention on bf16: a task is a sequence, a key-value head and a granule of keys. It
// packs its keys and values once, and walks the query heads that share them and, 128 at a time, the queries
// that see them; dk and dv are summed in its scratch. dq belongs to several tasks (one per granule): each
// adds its part in order of granule, after a turn that the one before it passes on (attention_turns.h).
#include <algorithm>

#include "backends/cpu/kernels/attention/attention_bf16.h"
#include "backends/cpu/kernels/attention/attention_bf16_queries.h"
#include "backends/cpu/kernels/attention/attention_turns.h"

namespace plimsoll::cpu {
namespace bf16 {
namespace {

/// dq as the granules leave it to one another.
struct SharedQueries {
  Turns turns;
  float* sums;  // [batch][heads][blocks of 32 queries][features] blocks; none where one granule is all
};

int64_t shared_sum_bytes(const AttentionShape& s) {
  if (num_granules(s.tokens) <= 1) return 0;
  return s.batch * s.num_heads * div_up(s.tokens, kPanel) * div_up(s.head_dim, kPanel) * kBlockFloats *
         static_cast<int64_t>(sizeof(float));
}

void load_keys(const KeyGranule& g) {
  const AttentionArgsOf<Bf16>& f = g.args.forward;
  const AttentionShape& shape = f.shape;
  const Bf16* k = f.k + head_offset(shape, g.b, g.kv_head, f.k_token_stride);
  const Bf16* v = f.v + head_offset(shape, g.b, g.kv_head, f.v_token_stride);
  const Lines keys = lines_of(k, f.k_token_stride), values = lines_of(v, f.v_token_stride);
  const Steps features(shape.head_dim, 0), tokens(shape.tokens, 0);
  for (int64_t block = 0; block < g.key_blocks(); ++block) {
    const int64_t first = g.begin + block * kPanel, count = std::min(kPanel, shape.tokens - first);
    const int64_t at = block * g.features * kPanelStepBytes;
    pack_panel(keys, first, count, features, 0, g.features, true, g.s.keys_t + at);
    pack_panel(values, first, count, features, 0, g.features, true, g.s.values_t + at);
  }
  const int64_t step = g.begin / kPanel;
  for (int64_t c = 0; c < g.features; ++c)
    pack_panel(features_of(k, f.k_token_stride), c * kPanel, std::min(kPanel, shape.head_dim - c * kPanel),
               tokens, step, step + g.key_blocks(), true, g.s.keys + c * kKeyBlocks * kPanelStepBytes);
  for (float* sums : {g.s.dkeys_t, g.s.dvalues_t})
    std::fill(sums, sums + g.key_blocks() * g.features * kBlockFloats, 0.0f);
}

void store_keys(const KeyGranule& g) {
  const int64_t dk_stride = g.args.dk_token_stride, dv_stride = g.args.dv_token_stride;
  Bf16* dk = g.args.dk + head_offset(g.shape(), g.b, g.kv_head, dk_stride) + g.begin * dk_stride;
  Bf16* dv = g.args.dv + head_offset(g.shape(), g.b, g.kv_head, dv_stride) + g.begin * dv_stride;
  for (int64_t block = 0; block < g.key_blocks(); ++block) {
    const int64_t key = block * kPanel, count = g.num_keys - key, at = block * g.features * kBlockFloats;
    write_keys(g.s.dkeys_t + at, count, g.shape().head_dim, g.args.forward.scale, dk + key * dk_stride,
               dk_stride);
    write_keys(g.s.dvalues_t + at, count, g.shape().head_dim, 1.0f, dv + key * dv_stride, dv_stride);
  }
}

// Adds the granule's part of dq in its turn, and writes dq after the last. `any`: there is a part.
void add_dqueries(const KeyGranule& g, const QueryBlock& block, bool any, int64_t h, int64_t first,
                  const SharedQueries& shared) {
  const AttentionShape& shape = g.shape();
  const bool from_zero = g.index == block.first_granule(), last = g.index == block.last_granule();
  const int64_t row_floats = g.features * kBlockFloats;
  auto& turn = shared.turns.of_queries(g.b, h, first / kBlock);
  if (!from_zero) wait_for_turn(turn, g.index);
  float* sums = g.s.dqueries;
  if (!from_zero || !last)
    sums = shared.sums +
           ((g.b * shape.num_heads + h) * div_up(shape.tokens, kPanel) + first / kPanel) * row_floats;
  const int64_t stride = g.args.dq_token_stride;
  Bf16* dq = g.args.dq + head_offset(shape, g.b, h, stride);
  for (int64_t r = 0; r < block.row_blocks(); ++r, sums += row_floats) {
    const bool added = any && block.add_dqueries(r, from_zero, sums);
    if (from_zero && !added) std::fill(sums, sums + row_floats, 0.0f);
    const int64_t row = first + r * kPanel;
    if (last)
      write_rows(sums, std::min(kPanel, shape.tokens - row), shape.head_dim, g.args.forward.scale,
                 dq + row * stride, stride);
  }
  pass_turn(turn, g.index + 1);
}

void run_granule(const KeyGranule& g, const SharedQueries& shared) {
  load_keys(g);
  const int64_t group = g.shape().num_heads / g.shape().num_kv_heads;
  const int64_t lowest = g.mask.lower_query(g.begin) / kQueries, blocks = div_up(g.shape().tokens, kQueries);
  const int64_t last_head = (g.kv_head + 1) * group - 1;
  for (int64_t h = g.kv_head * group; h <= last_head; ++h)
    for (int64_t index = lowest; index < blocks; ++index) {
      const int64_t first = index * kQueries;
      QueryBlock block(g, h, first);
      if (g.index < block.first_granule() || g.index > block.last_granule()) continue;
      const bool any = block.sees_granule(), ends = index + 1 == blocks;
      if (any) {
        block.load();
        block.add_dkeys(ends ? std::min(h + 1, last_head) : h, ends ? lowest * kQueries : first + kQueries);
      }
      add_dqueries(g, block, any, h, first, shared);
    }
  store_keys(g);
}

int64_t backward_scratch_bytes(int64_t head_dim) { return BackwardScratch(Carver(nullptr), head_dim).bytes; }

}  // namespace
}  // namespace bf16

int64_t attention_bf16_backward_workspace_bytes(const AttentionShape& shape, int num_threads) {
  return bf16::shared_sum_bytes(shape) + num_threads * bf16::backward_scratch_bytes(shape.head_dim) +
         Turns::bytes(shape);
}

void attention_bf16_backward(const AttentionBackwardArgsOf<Bf16>& args, ThreadPool& pool,
                             std::span<std::byte> workspace) {
  check_attention(args.forward);
  const AttentionShape& s = args.forward.shape;
  PLIMSOLL_CHECK(static_cast<int64_t>(workspace.size()) >=
                     attention_bf16_backward_workspace_bytes(s, pool.num_threads()),
                 "attention_bf16_backward: workspace");
  const int64_t own_bytes = bf16::backward_scratch_bytes(s.head_dim), heads = s.batch * s.num_kv_heads;
  std::byte* own = workspace.data() + bf16::shared_sum_bytes(s);
  const bf16::SharedQueries shared{.turns = Turns(s, own + pool.num_threads() * own_bytes),
                                   .sums = reinterpret_cast<float*>(workspace.data())};
  const bf16::Kernels& kernels = bf16::current_kernels();
  // Under a causal mask the first granule is seen by the most queries, so it goes first.
  pool.run(heads * num_granules(s.tokens), [&](int64_t index, int thread) {
    const int64_t b = index % heads / s.num_kv_heads, begin = index / heads * kGranule;
    const bf16::BackwardScratch scratch(bf16::Carver(own + thread * own_bytes), s.head_dim);
    kernels.begin();
    bf16::run_granule({.args = args,
                       .kernels = kernels,
                       .s = scratch,
                       .mask = mask_of(args.forward, b),
                       .b = b,
                       .kv_head = index % heads % s.num_kv_heads,
                       .index = index / heads,
                       .begin = begin,
                       .num_keys = std::min(kGranule, s.tokens - begin),
                       .features = bf16::div_up(s.head_dim, bf16::kPanel)},
                      shared);
    kernels.end();
  });
}

}  // namespace plimsoll::cpu
