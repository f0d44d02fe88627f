// The backward pass of attention on bf16: a task is a sequence, a key-value head and a granule of keys. It
// packs its keys and values once, and walks the query heads that share them and, 64 at a time, the queries
// that see them; dk and dv are summed in its scratch. dq belongs to several tasks (one per granule): each
// adds its part in order of granule, after a turn that the one before it passes on (attention_turns.h).
#include <algorithm>

#include "backends/cpu/kernels/attention_bf16.h"
#include "backends/cpu/kernels/attention_bf16_blocks.h"
#include "backends/cpu/kernels/attention_bf16_scratch.h"
#include "backends/cpu/kernels/attention_turns.h"

namespace plimsoll::cpu {
namespace bf16 {
namespace {

constexpr float kLog2E = 1.44269504f;
// Blocks of a granule of keys, and of the queries that are worked on together.
constexpr int64_t kKeyBlocks = kGranule / kPanel, kRowBlocks = kBlock / kPanel;

/// Operands and results of the backward pass that tasks share.
struct Shared {
  const AttentionBackwardArgsOf<Bf16>& args;
  const Kernels& kernels;
  Turns turns;
  float* dqueries;  // [batch][heads][blocks of 32 queries][features] blocks, if there are several granules

  [[nodiscard]] const AttentionShape& shape() const { return args.forward.shape; }
  [[nodiscard]] int64_t features() const { return div_up(shape().head_dim, kPanel); }
  [[nodiscard]] float* dqueries_of(int64_t b, int64_t h, int64_t block) const {
    return dqueries +
           ((b * shape().num_heads + h) * div_up(shape().tokens, kPanel) + block) * features() * kBlockFloats;
  }
};

int64_t shared_dquery_bytes(const AttentionShape& s) {
  if (num_granules(s.tokens) <= 1) return 0;
  return s.batch * s.num_heads * div_up(s.tokens, kPanel) * div_up(s.head_dim, kPanel) * kBlockFloats *
         static_cast<int64_t>(sizeof(float));
}

/// A thread's own memory. Panels of the granule's keys, then of the block of queries; `features` are blocks
/// of 32.
struct Scratch {
  std::byte *keys_t, *values_t;    // B: [kKeyBlocks][features] steps, keys as columns
  std::byte* keys;                 // B: [features][kKeyBlocks] steps, features as columns
  float *dkeys_t, *dvalues_t;      // [kKeyBlocks][features] blocks, features as rows
  std::byte *queries, *douts;      // A: [kRowBlocks][features] steps, queries as rows
  std::byte *queries_t, *douts_t;  // A: [features][kRowBlocks] steps, features as rows
  float *scores[2], *dprobs[2];
  std::byte *probs, *dscores;  // B: [kRowBlocks] steps of one block of keys
  std::byte* dscores_a;        // A: [kRowBlocks][kKeyBlocks] steps
  float* dqueries;             // [kRowBlocks][features] blocks
  GradientRows* rows;          // [kRowBlocks]
  KeptWeights* kept;
  int64_t bytes = 0;

  Scratch(Carver carver, int64_t head_dim) {
    const int64_t features = div_up(head_dim, kPanel);
    const auto steps = [&](int64_t count) { return carver.take<std::byte>(count * kPanelStepBytes); };
    const auto blocks = [&](int64_t count) { return carver.take<float>(count * kBlockFloats); };
    for (std::byte** p : {&keys_t, &values_t, &keys}) *p = steps(kKeyBlocks * features);
    for (float** p : {&dkeys_t, &dvalues_t}) *p = blocks(kKeyBlocks * features);
    for (std::byte** p : {&queries, &douts, &queries_t, &douts_t}) *p = steps(kRowBlocks * features);
    for (float** p : {&scores[0], &scores[1], &dprobs[0], &dprobs[1]}) *p = blocks(1);
    for (std::byte** p : {&probs, &dscores}) *p = steps(kRowBlocks);
    dscores_a = steps(kRowBlocks * kKeyBlocks);
    dqueries = blocks(kRowBlocks * features);
    rows = carver.take<GradientRows>(kRowBlocks);
    kept = carver.take<KeptWeights>(1);
    bytes = carver.taken();
  }
};

/// One granule of keys of one key-value head.
class KeyGranule {
 public:
  KeyGranule(const Shared& shared, const AttentionTask& task, const Scratch& scratch)
      : sh_(shared),
        a_(shared.args),
        f_(shared.args.forward),
        shape_(f_.shape),
        b_(task.b),
        kv_head_(task.h),
        granule_(task.granule),
        begin_(granule_ * kGranule),
        num_keys_(std::min(kGranule, shape_.tokens - begin_)),
        features_(shared.features()),
        mask_(mask_of(f_, task.b)),
        s_(scratch) {}

  void run() {
    load_keys();
    const int64_t group = shape_.num_heads / shape_.num_kv_heads;
    const int64_t lowest = mask_.causal ? begin_ / kBlock : 0;
    for (int64_t h = kv_head_ * group; h < (kv_head_ + 1) * group; ++h)
      for (int64_t block = lowest; block < num_blocks(shape_.tokens); ++block) visit(h, block);
    store_keys();
  }

 private:
  [[nodiscard]] int64_t key_blocks() const { return div_up(num_keys_, kPanel); }
  [[nodiscard]] int tiles(int64_t feature) const { return shape_.head_dim - feature * kPanel > 16 ? 2 : 1; }

  void load_keys() {
    const Bf16* k = f_.k + head_offset(shape_, b_, kv_head_, f_.k_token_stride);
    const Bf16* v = f_.v + head_offset(shape_, b_, kv_head_, f_.v_token_stride);
    const Steps features(shape_.head_dim, 0), tokens(shape_.tokens, 0);
    for (int64_t block = 0; block < key_blocks(); ++block) {
      const int64_t first = begin_ + block * kPanel, count = std::min(kPanel, shape_.tokens - first);
      const int64_t at = block * features_ * kPanelStepBytes;
      pack_panel(lines_of(k, f_.k_token_stride), first, count, features, 0, features_, true, s_.keys_t + at);
      pack_panel(lines_of(v, f_.v_token_stride), first, count, features, 0, features_, true,
                 s_.values_t + at);
    }
    const int64_t step = begin_ / kPanel;
    for (int64_t f = 0; f < features_; ++f)
      pack_panel(features_of(k, f_.k_token_stride), f * kPanel,
                 std::min(kPanel, shape_.head_dim - f * kPanel), tokens, step, step + key_blocks(), true,
                 s_.keys + f * kKeyBlocks * kPanelStepBytes);
    for (float* sums : {s_.dkeys_t, s_.dvalues_t})
      std::fill(sums, sums + key_blocks() * features_ * kBlockFloats, 0.0f);
  }

  void store_keys() const {
    const int64_t dk_stride = a_.dk_token_stride, dv_stride = a_.dv_token_stride;
    Bf16* dk = a_.dk + head_offset(shape_, b_, kv_head_, dk_stride) + begin_ * dk_stride;
    Bf16* dv = a_.dv + head_offset(shape_, b_, kv_head_, dv_stride) + begin_ * dv_stride;
    for (int64_t block = 0; block < key_blocks(); ++block) {
      const int64_t key = block * kPanel, count = num_keys_ - key, at = block * features_ * kBlockFloats;
      write_keys(s_.dkeys_t + at, count, shape_.head_dim, f_.scale, dk + key * dk_stride, dk_stride);
      write_keys(s_.dvalues_t + at, count, shape_.head_dim, 1.0f, dv + key * dv_stride, dv_stride);
    }
  }

  // A block of 64 queries of head h, if it sees any of the granules up to this one.
  void visit(int64_t h, int64_t block) {
    h_ = h, first_ = block * kBlock;
    num_rows_ = std::min<int64_t>(kBlock, shape_.tokens - first_);
    row_blocks_ = div_up(num_rows_, kPanel);
    int64_t lowest = first_;
    for (int64_t r = 0; r < row_blocks_; ++r) {
      const int64_t row = first_ + r * kPanel;
      seen_[r] = SeenKeys(mask_, row, std::min(kPanel, shape_.tokens - row));
      lowest = std::min<int64_t>(lowest, seen_[r].min_lower);
    }
    first_granule_ = lowest / kGranule;
    const int64_t last = mask_.causal ? (first_ + num_rows_ - 1) / kGranule : num_granules(shape_.tokens) - 1;
    if (granule_ < first_granule_ || granule_ > last) return;
    const bool any = std::any_of(seen_, seen_ + row_blocks_, [&](const SeenKeys& seen) {
      return seen.min_lower < begin_ + num_keys_ && seen.max_upper > begin_;
    });
    if (any) load_queries(), walk_keys();
    add_dqueries(any, last);
  }

  void load_queries() {
    const Bf16* q = f_.q + head_offset(shape_, b_, h_, f_.q_token_stride);
    const Bf16* dout = a_.dout + head_offset(shape_, b_, h_, a_.dout_token_stride);
    const Bf16* out = f_.out + head_offset(shape_, b_, h_, f_.out_token_stride);
    const float* lse = f_.lse + (b_ * shape_.num_heads + h_) * shape_.tokens;
    const Steps features(shape_.head_dim, 0), tokens(shape_.tokens, 0);
    for (int64_t r = 0; r < row_blocks_; ++r) {
      const int64_t row = first_ + r * kPanel, count = std::min(kPanel, shape_.tokens - row);
      const int64_t at = r * features_ * kPanelStepBytes;
      pack_panel(lines_of(q, f_.q_token_stride), row, count, features, 0, features_, false, s_.queries + at);
      pack_panel(lines_of(dout, a_.dout_token_stride), row, count, features, 0, features_, false,
                 s_.douts + at);
      load_rows(lse + row, dout + row * a_.dout_token_stride, a_.dout_token_stride,
                out + row * f_.out_token_stride, f_.out_token_stride, count, shape_.head_dim, s_.rows[r]);
    }
    const int64_t step = first_ / kPanel;
    for (int64_t f = 0; f < features_; ++f) {
      const int64_t count = std::min(kPanel, shape_.head_dim - f * kPanel);
      const int64_t at = f * kRowBlocks * kPanelStepBytes;
      pack_panel(features_of(q, f_.q_token_stride), f * kPanel, count, tokens, step, step + row_blocks_,
                 false, s_.queries_t + at);
      pack_panel(features_of(dout, a_.dout_token_stride), f * kPanel, count, tokens, step, step + row_blocks_,
                 false, s_.douts_t + at);
    }
  }

  /// A pair of blocks that see each other.
  struct Pair {
    int64_t key_block = 0, row_block = 0;
    bool valid = false;
  };
  // The first one from (key_block, row_block) on, key block by key block.
  [[nodiscard]] Pair pair_from(int64_t key_block, int64_t row_block) const {
    for (; key_block < key_blocks(); ++key_block, row_block = 0)
      for (; row_block < row_blocks_; ++row_block)
        if (seen_[row_block].any(begin_ + key_block * kPanel)) return {key_block, row_block, true};
    return {};
  }

  void walk_keys() {
    Pair pair = pair_from(0, 0);
    if (pair.valid) multiply_features(pair, 0);
    for (int64_t n = 0, run = pair.row_block; pair.valid; ++n) {
      const Pair next = pair_from(pair.key_block, pair.row_block + 1);
      if (next.valid) multiply_features(next, (n + 1) % 2);
      differentiate_pair(pair, n % 2);
      // Blocks of queries that follow one another are contracted together.
      const bool goes_on =
          next.valid && next.key_block == pair.key_block && next.row_block == pair.row_block + 1;
      if (!goes_on) {
        contract_queries(pair.key_block, run, pair.row_block + 1);
        run = next.row_block;
      }
      pair = next;
    }
  }

  // Scores and dP of a pair.
  void multiply_features(const Pair& p, int64_t buffer) const {
    const int64_t a = p.row_block * features_ * kPanelStepBytes,
                  b = p.key_block * features_ * kPanelStepBytes;
    sh_.kernels.multiply({.a = s_.queries + a,
                          .b = s_.keys_t + b,
                          .sums = s_.scores[buffer],
                          .steps = features_,
                          .from_zero = true});
    sh_.kernels.multiply({.a = s_.douts + a,
                          .b = s_.values_t + b,
                          .sums = s_.dprobs[buffer],
                          .steps = features_,
                          .from_zero = true});
  }

  void differentiate_pair(const Pair& p, int64_t buffer) const {
    const int64_t key = begin_ + p.key_block * kPanel, row = first_ + p.row_block * kPanel;
    const SeenKeys& seen = seen_[p.row_block];
    if (f_.dropout.on)
      draw_kept(f_.dropout, dropout_stream(f_.dropout, b_, h_), row, key, shape_.tokens, *s_.kept);
    differentiate({.scores = s_.scores[buffer],
                   .dprobs = s_.dprobs[buffer],
                   .factor = f_.scale * kLog2E,
                   .rows = &s_.rows[p.row_block],
                   .seen = seen.all(key) ? nullptr : &seen,
                   .key = key,
                   .kept = f_.dropout.on ? s_.kept : nullptr,
                   .inverse_keep = f_.dropout.inverse_keep,
                   .probs_b = s_.probs + p.row_block * kPanelStepBytes,
                   .dscores_b = s_.dscores + p.row_block * kPanelStepBytes,
                   .dscores_a = s_.dscores_a + (p.row_block * kKeyBlocks + p.key_block) * kPanelStepBytes});
  }

  // dv and dk of a block of keys from blocks [begin, end) of queries.
  void contract_queries(int64_t key_block, int64_t begin, int64_t end) const {
    for (int64_t f = 0; f < features_; ++f) {
      const int64_t a = (f * kRowBlocks + begin) * kPanelStepBytes, b = begin * kPanelStepBytes;
      const int64_t sums = (key_block * features_ + f) * kBlockFloats;
      sh_.kernels.multiply({.a = s_.douts_t + a,
                            .b = s_.probs + b,
                            .sums = s_.dvalues_t + sums,
                            .steps = end - begin,
                            .row_tiles = tiles(f)});
      sh_.kernels.multiply({.a = s_.queries_t + a,
                            .b = s_.dscores + b,
                            .sums = s_.dkeys_t + sums,
                            .steps = end - begin,
                            .row_tiles = tiles(f)});
    }
  }

  // Adds this granule's part of dq in its turn, and writes dq after the last.
  void add_dqueries(bool any, int64_t last) const {
    const bool alone = first_granule_ == last;
    float* sums = alone ? s_.dqueries : sh_.dqueries_of(b_, h_, first_ / kPanel);
    auto& turn = sh_.turns.of_queries(b_, h_, first_ / kBlock);
    const bool from_zero = granule_ == first_granule_;
    if (!from_zero) wait_for_turn(turn, granule_);
    for (int64_t r = 0; r < row_blocks_; ++r) {
      float* row_sums = sums + r * features_ * kBlockFloats;
      const bool contracted = any && contract_keys(r, from_zero, row_sums);
      if (from_zero && !contracted) std::fill(row_sums, row_sums + features_ * kBlockFloats, 0.0f);
      const int64_t row = first_ + r * kPanel;
      if (granule_ == last)
        write_rows(row_sums, std::min(kPanel, shape_.tokens - row), shape_.head_dim, f_.scale,
                   a_.dq + head_offset(shape_, b_, h_, a_.dq_token_stride) + row * a_.dq_token_stride,
                   a_.dq_token_stride);
    }
    if (!alone) pass_turn(turn, granule_ + 1);
  }

  // dq of a block of queries from the blocks of keys that it sees; false if it sees none.
  bool contract_keys(int64_t row_block, bool from_zero, float* sums) const {
    const SeenKeys& seen = seen_[row_block];
    int64_t begin = 0, end = key_blocks();
    while (begin < end && !seen.any(begin_ + begin * kPanel)) ++begin;
    while (end > begin && !seen.any(begin_ + (end - 1) * kPanel)) --end;
    for (int64_t f = 0; f < features_ && begin < end; ++f)
      sh_.kernels.multiply({.a = s_.dscores_a + (row_block * kKeyBlocks + begin) * kPanelStepBytes,
                            .b = s_.keys + (f * kKeyBlocks + begin) * kPanelStepBytes,
                            .sums = sums + f * kBlockFloats,
                            .steps = end - begin,
                            .from_zero = from_zero,
                            .column_tiles = tiles(f)});
    return begin < end;
  }

  const Shared& sh_;
  const AttentionBackwardArgsOf<Bf16>& a_;
  const AttentionArgsOf<Bf16>& f_;
  const AttentionShape& shape_;
  int64_t b_, kv_head_, granule_, begin_, num_keys_, features_;
  MaskView mask_;
  const Scratch& s_;
  // Of the block of queries at hand.
  int64_t h_ = 0, first_ = 0, num_rows_ = 0, row_blocks_ = 0, first_granule_ = 0;
  SeenKeys seen_[kRowBlocks];
};

int64_t scratch_bytes(int64_t head_dim) { return Scratch(Carver(nullptr), head_dim).bytes; }

}  // namespace
}  // namespace bf16

int64_t attention_bf16_backward_workspace_bytes(const AttentionShape& shape, int num_threads) {
  return bf16::shared_dquery_bytes(shape) + num_threads * bf16::scratch_bytes(shape.head_dim) +
         Turns::bytes(shape);
}

void attention_bf16_backward(const AttentionBackwardArgsOf<Bf16>& args, ThreadPool& pool,
                             std::span<std::byte> workspace) {
  check_attention(args.forward);
  const AttentionShape& s = args.forward.shape;
  PLIMSOLL_CHECK(static_cast<int64_t>(workspace.size()) >=
                     attention_bf16_backward_workspace_bytes(s, pool.num_threads()),
                 "attention_bf16_backward: workspace");
  const int64_t own_bytes = bf16::scratch_bytes(s.head_dim), heads = s.batch * s.num_kv_heads;
  std::byte* own = workspace.data() + bf16::shared_dquery_bytes(s);
  const bf16::Shared shared{.args = args,
                            .kernels = bf16::current_kernels(),
                            .turns = Turns(s, own + pool.num_threads() * own_bytes),
                            .dqueries = reinterpret_cast<float*>(workspace.data())};
  // Under a causal mask the first granule is seen by the most queries, so it goes first.
  pool.run(heads * num_granules(s.tokens), [&](int64_t index, int thread) {
    const int64_t head = index % heads;
    const AttentionTask task{head / s.num_kv_heads, head % s.num_kv_heads, index / heads};
    const bf16::Scratch scratch(bf16::Carver(own + thread * own_bytes), s.head_dim);
    shared.kernels.begin();
    bf16::KeyGranule(shared, task, scratch).run();
    shared.kernels.end();
  });
}

}  // namespace plimsoll::cpu
