// Pairs of blocks, 32 queries by 32 keys, block of keys by block of keys. Products and vector work alternate
// and do not overlap: for some hundred cycles after an AMX instruction vectors run at half their rate.
#include "backends/cpu/kernels/attention/attention_bf16_queries.h"

#include <algorithm>

namespace plimsoll::cpu::bf16 {
namespace {

// Pairs over which the prefetching of a block of queries is spread.
constexpr int64_t kPrefetchPairs = 8;

// Rows [begin, end) of a head.
void prefetch_rows(const Bf16* head, int64_t stride, int64_t begin, int64_t end, int64_t head_dim) {
  for (const Bf16 *row = head + begin * stride, *last = head + end * stride; row < last; row += stride) {
    for (int64_t c = 0; c < head_dim; c += kPanel) __builtin_prefetch(row + c, 0, 2);
    __builtin_prefetch(row + head_dim - 1, 0, 2);
  }
}

}  // namespace

BackwardScratch::BackwardScratch(Carver carver, int64_t head_dim) {
  const int64_t features = div_up(head_dim, kPanel);
  const auto steps = [&](int64_t count) { return carver.take<std::byte>(count * kPanelStepBytes); };
  const auto blocks = [&](int64_t count) { return carver.take<float>(count * kBlockFloats); };
  for (std::byte** p : {&keys_t, &values_t, &keys}) *p = steps(kKeyBlocks * features);
  for (float** p : {&dkeys_t, &dvalues_t}) *p = blocks(kKeyBlocks * features);
  for (std::byte** p : {&queries, &douts, &queries_t, &douts_t}) *p = steps(kRowBlocks * features);
  for (float** p : {&scores, &dprobs}) *p = blocks(1);
  for (std::byte** p : {&probs, &dscores}) *p = steps(kRowBlocks);
  dscores_a = steps(kRowBlocks * kKeyBlocks);
  dqueries = blocks(kRowBlocks * features);
  rows = carver.take<GradientRows>(kRowBlocks);
  kept = carver.take<KeptWeights>(1);
  bytes = carver.taken();
}

QueryBlock::QueryBlock(const KeyGranule& granule, int64_t head, int64_t first)
    : g_(granule), head_(head), first_(first) {
  const int64_t tokens = g_.shape().tokens, num_rows = std::min(kQueries, tokens - first);
  row_blocks_ = div_up(num_rows, kPanel);
  int64_t lowest = first, end = first + 1;
  for (int64_t r = 0; r < row_blocks_; ++r) {
    const int64_t row = first + r * kPanel;
    seen_[r] = SeenKeys(g_.mask, row, std::min(kPanel, tokens - row));
    lowest = std::min<int64_t>(lowest, seen_[r].min_lower);
    end = std::max<int64_t>(end, seen_[r].max_upper);
  }
  first_granule_ = lowest / kGranule;
  last_granule_ = (end - 1) / kGranule;
}

bool QueryBlock::sees_granule() const {
  return std::any_of(seen_, seen_ + row_blocks_, [&](const SeenKeys& seen) {
    return seen.min_lower < g_.begin + g_.num_keys && seen.max_upper > g_.begin;
  });
}

void QueryBlock::load() const {
  const AttentionArgsOf<Bf16>& f = g_.args.forward;
  const AttentionShape& shape = f.shape;
  const int64_t dout_stride = g_.args.dout_token_stride, tokens = shape.tokens;
  const Bf16* q = f.q + head_offset(shape, g_.b, head_, f.q_token_stride);
  const Bf16* dout = g_.args.dout + head_offset(shape, g_.b, head_, dout_stride);
  const Bf16* out = f.out + head_offset(shape, g_.b, head_, f.out_token_stride);
  const float* lse = f.lse + (g_.b * shape.num_heads + head_) * tokens;
  const Lines queries = lines_of(q, f.q_token_stride), douts = lines_of(dout, dout_stride);
  const Steps features(shape.head_dim, 0), rows(tokens, 0);
  for (int64_t r = 0; r < row_blocks_; ++r) {
    const int64_t row = first_ + r * kPanel, count = std::min(kPanel, tokens - row);
    const int64_t at = r * g_.features * kPanelStepBytes;
    pack_panel(queries, row, count, features, 0, g_.features, false, g_.s.queries + at);
    pack_panel(douts, row, count, features, 0, g_.features, false, g_.s.douts + at);
    load_rows(lse + row, dout + row * dout_stride, dout_stride, out + row * f.out_token_stride,
              f.out_token_stride, count, shape.head_dim, g_.s.rows[r]);
  }
  const int64_t step = first_ / kPanel, end = step + row_blocks_;
  const Lines queries_t = features_of(q, f.q_token_stride), douts_t = features_of(dout, dout_stride);
  for (int64_t c = 0; c < g_.features; ++c) {
    const int64_t feature = c * kPanel, count = std::min(kPanel, shape.head_dim - feature);
    const int64_t at = c * kRowBlocks * kPanelStepBytes;
    pack_panel(queries_t, feature, count, rows, step, end, false, g_.s.queries_t + at);
    pack_panel(douts_t, feature, count, rows, step, end, false, g_.s.douts_t + at);
  }
}

void QueryBlock::add_dkeys(int64_t next_head, int64_t next_first) const {
  const AttentionArgsOf<Bf16>& f = g_.args.forward;
  const auto prefetch = [&](const Bf16* data, int64_t stride, int64_t part) {
    const int64_t row = next_first + part * kQueries / kPrefetchPairs;
    prefetch_rows(data + head_offset(f.shape, g_.b, next_head, stride), stride, row,
                  std::min(row + kQueries / kPrefetchPairs, f.shape.tokens), f.shape.head_dim);
  };
  int64_t pairs = 0;
  for (int64_t key_block = 0; key_block < g_.key_blocks(); ++key_block) {
    int64_t run = 0;  // blocks of queries that follow one another are contracted together
    for (int64_t r = 0; r < row_blocks_; ++r) {
      if (!seen_[r].any(g_.begin + key_block * kPanel)) {
        contract_queries(key_block, run, r);
        run = r + 1;
        continue;
      }
      if (pairs < kPrefetchPairs) {
        prefetch(f.q, f.q_token_stride, pairs);
        prefetch(g_.args.dout, g_.args.dout_token_stride, pairs);
        prefetch(f.out, f.out_token_stride, pairs);
      }
      differentiate_pair(key_block, r);
      ++pairs;
    }
    contract_queries(key_block, run, row_blocks_);
  }
}

// P and dS of a pair of blocks.
void QueryBlock::differentiate_pair(int64_t key_block, int64_t row_block) const {
  const AttentionArgsOf<Bf16>& f = g_.args.forward;
  const int64_t a = row_block * g_.features * kPanelStepBytes, b = key_block * g_.features * kPanelStepBytes;
  g_.kernels.multiply({.a = g_.s.queries + a,
                       .b = g_.s.keys_t + b,
                       .sums = g_.s.scores,
                       .steps = g_.features,
                       .from_zero = true});
  g_.kernels.multiply({.a = g_.s.douts + a,
                       .b = g_.s.values_t + b,
                       .sums = g_.s.dprobs,
                       .steps = g_.features,
                       .from_zero = true});
  const int64_t key = g_.begin + key_block * kPanel, row = first_ + row_block * kPanel;
  const SeenKeys& seen = seen_[row_block];
  if (f.dropout.on)
    draw_kept(f.dropout, dropout_stream(f.dropout, g_.b, head_), row, key, f.shape.tokens, *g_.s.kept);
  differentiate({.scores = g_.s.scores,
                 .dprobs = g_.s.dprobs,
                 .factor = f.scale * kLog2E,
                 .rows = &g_.s.rows[row_block],
                 .seen = seen.all(key) ? nullptr : &seen,
                 .key = key,
                 .kept = f.dropout.on ? g_.s.kept : nullptr,
                 .inverse_keep = f.dropout.inverse_keep,
                 .probs_b = g_.s.probs + row_block * kPanelStepBytes,
                 .dscores_b = g_.s.dscores + row_block * kPanelStepBytes,
                 .dscores_a = g_.s.dscores_a + (row_block * kKeyBlocks + key_block) * kPanelStepBytes});
}

// dv and dk of a block of keys from blocks [begin, end) of queries.
void QueryBlock::contract_queries(int64_t key_block, int64_t begin, int64_t end) const {
  for (int64_t c = 0; c < g_.features && begin < end; ++c) {
    const int64_t a = (c * kRowBlocks + begin) * kPanelStepBytes, b = begin * kPanelStepBytes;
    const int64_t sums = (key_block * g_.features + c) * kBlockFloats;
    g_.kernels.multiply({.a = g_.s.douts_t + a,
                         .b = g_.s.probs + b,
                         .sums = g_.s.dvalues_t + sums,
                         .steps = end - begin,
                         .row_tiles = g_.tiles(c)});
    g_.kernels.multiply({.a = g_.s.queries_t + a,
                         .b = g_.s.dscores + b,
                         .sums = g_.s.dkeys_t + sums,
                         .steps = end - begin,
                         .row_tiles = g_.tiles(c)});
  }
}

bool QueryBlock::add_dqueries(int64_t row_block, bool from_zero, float* sums) const {
  const SeenKeys& seen = seen_[row_block];
  int64_t begin = 0, end = g_.key_blocks();
  while (begin < end && !seen.any(g_.begin + begin * kPanel)) ++begin;
  while (end > begin && !seen.any(g_.begin + (end - 1) * kPanel)) --end;
  for (int64_t c = 0; c < g_.features && begin < end; ++c)
    g_.kernels.multiply({.a = g_.s.dscores_a + (row_block * kKeyBlocks + begin) * kPanelStepBytes,
                         .b = g_.s.keys + (c * kKeyBlocks + begin) * kPanelStepBytes,
                         .sums = sums + c * kBlockFloats,
                         .steps = end - begin,
                         .from_zero = from_zero,
                         .column_tiles = g_.tiles(c)});
  return begin < end;
}

}  // namespace plimsoll::cpu::bf16
