// The forward pass of attention on bf16: keys and values are packed once; then a task is a sequence, a head
// and a granule of queries, 32 of which at a time walk the tiles of keys that they see.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "backends/cpu/kernels/attention/attention_bf16.h"
#include "backends/cpu/kernels/attention/attention_bf16_blocks.h"
#include "backends/cpu/kernels/attention/attention_bf16_scratch.h"
#include "backends/cpu/kernels/isa.h"

namespace plimsoll::cpu {
namespace bf16 {
namespace {

// Blocks of keys in a tile: their scores of 32 queries are 16 KiB, a third of the first-level cache.
constexpr int64_t kTile = 4;

/// k and v of all sequences and heads as panels of B: k by blocks of 32 keys, v by blocks of 32 features.
class PackedKeys {
 public:
  PackedKeys(const AttentionShape& s, std::byte* memory)
      : heads_(s.num_kv_heads),
        blocks_(div_up(s.tokens, kPanel)),
        features_(div_up(s.head_dim, kPanel)),
        k_(memory),
        v_(memory + bytes(s) / 2) {}
  static int64_t bytes(const AttentionShape& s) {
    return 2 * s.batch * s.num_kv_heads * div_up(s.tokens, kPanel) * div_up(s.head_dim, kPanel) *
           kPanelStepBytes;
  }
  [[nodiscard]] std::byte* k(int64_t b, int64_t head, int64_t block) const {
    return k_ + ((b * heads_ + head) * blocks_ + block) * features_ * kPanelStepBytes;
  }
  [[nodiscard]] std::byte* v(int64_t b, int64_t head, int64_t feature_block, int64_t block) const {
    return v_ + (((b * heads_ + head) * features_ + feature_block) * blocks_ + block) * kPanelStepBytes;
  }

 private:
  int64_t heads_, blocks_, features_;
  std::byte *k_, *v_;
};

/// A thread's own memory.
struct Scratch {
  std::byte* queries = nullptr;  // a panel of A
  float* scores = nullptr;       // [kTile] blocks
  std::byte* probs = nullptr;    // a panel of A
  float* results = nullptr;      // [features] blocks
  SoftmaxRows* rows = nullptr;
  KeptWeights* kept = nullptr;  // [kTile]

  explicit Scratch(Carver carver, int64_t head_dim) {
    const int64_t features = div_up(head_dim, kPanel);
    queries = carver.take<std::byte>(features * kPanelStepBytes);
    scores = carver.take<float>(kTile * kBlockFloats);
    probs = carver.take<std::byte>(kTile * kPanelStepBytes);
    results = carver.take<float>(features * kBlockFloats);
    rows = carver.take<SoftmaxRows>(1);
    kept = carver.take<KeptWeights>(kTile);
    bytes = carver.taken();
  }
  int64_t bytes = 0;
};

/// 32 queries of a head and the tiles of keys that they see.
class QueryRows {
 public:
  QueryRows(const AttentionArgsOf<Bf16>& args, const PackedKeys& keys, const Kernels& kernels,
            const AttentionTask& task, int64_t first, const Scratch& scratch)
      : a_(args),
        keys_(keys),
        kernels_(kernels),
        task_(task),
        first_(first),
        num_rows_(std::min(kPanel, args.shape.tokens - first)),
        kv_head_(task.h / (args.shape.num_heads / args.shape.num_kv_heads)),
        factor_(std::max(std::fabs(args.scale) * kLog2E, FLT_MIN)),
        seen_(mask_of(args, task.b), first, num_rows_),
        s_(scratch) {}

  void run() {
    load();
    const int64_t begin = seen_.min_lower / kPanel, end = div_up(seen_.max_upper, kPanel);
    if (begin >= end) std::fill(s_.results, s_.results + features() * kBlockFloats, 0.0f);
    for (int64_t tile = begin; tile < end; tile += kTile)
      step(tile, std::min(kTile, end - tile), tile == begin);
    const AttentionShape& s = a_.shape;
    finish(*s_.rows, s_.results, num_rows_, s.head_dim, a_.dropout.inverse_keep,
           a_.out + head_offset(s, task_.b, task_.h, a_.out_token_stride) + first_ * a_.out_token_stride,
           a_.out_token_stride,
           a_.lse == nullptr ? nullptr : a_.lse + (task_.b * s.num_heads + task_.h) * s.tokens + first_);
  }

 private:
  [[nodiscard]] int64_t features() const { return div_up(a_.shape.head_dim, kPanel); }
  [[nodiscard]] int row_tiles() const { return num_rows_ > 16 ? 2 : 1; }

  void load() {
    const Bf16* q = a_.q + head_offset(a_.shape, task_.b, task_.h, a_.q_token_stride);
    pack_panel(lines_of(q, a_.q_token_stride), first_, num_rows_, Steps(a_.shape.head_dim, 0), 0, features(),
               false, s_.queries);
    // The sign of the scale goes into q, where it is exact: so the largest score stays the largest.
    if (a_.scale < 0) negate(s_.queries, features() * kPanelStepBytes);
    start(*s_.rows);
  }

  // A tile of `blocks` blocks of keys, from block `tile` on.
  void step(int64_t tile, int64_t blocks, bool first) const {
    for (int64_t b = 0; b < blocks; ++b)
      kernels_.multiply({.a = s_.queries,
                         .b = keys_.k(task_.b, kv_head_, tile + b),
                         .sums = s_.scores + b * kBlockFloats,
                         .steps = features(),
                         .from_zero = true,
                         .row_tiles = row_tiles()});
    for (int64_t b = 0; b < blocks; ++b)
      if (!seen_.all((tile + b) * kPanel)) hide(seen_, (tile + b) * kPanel, s_.scores + b * kBlockFloats);
    const bool raised = raise_max(s_.scores, blocks, row_tiles(), factor_, *s_.rows);
    if (raised && !first) rescale(features(), row_tiles(), *s_.rows, s_.results);
    exponentiate(s_.scores, blocks, row_tiles(), factor_, draw(tile, blocks), *s_.rows, s_.probs);
    for (int64_t f = 0; f < features(); ++f)
      kernels_.multiply({.a = s_.probs,
                         .b = keys_.v(task_.b, kv_head_, f, tile),
                         .sums = s_.results + f * kBlockFloats,
                         .steps = blocks,
                         .from_zero = first,
                         .row_tiles = row_tiles(),
                         .column_tiles = a_.shape.head_dim - f * kPanel > 16 ? 2 : 1});
  }

  [[nodiscard]] const KeptWeights* draw(int64_t tile, int64_t blocks) const {
    if (!a_.dropout.on) return nullptr;
    for (int64_t b = 0; b < blocks; ++b)
      draw_kept(a_.dropout, dropout_stream(a_.dropout, task_.b, task_.h), first_, (tile + b) * kPanel,
                a_.shape.tokens, s_.kept[b]);
    return s_.kept;
  }

  const AttentionArgsOf<Bf16>& a_;
  const PackedKeys& keys_;
  const Kernels& kernels_;
  AttentionTask task_;
  int64_t first_, num_rows_, kv_head_;
  float factor_;
  SeenKeys seen_;
  Scratch s_;
};

void pack_keys(const AttentionArgsOf<Bf16>& a, const PackedKeys& keys, ThreadPool& pool) {
  const AttentionShape& s = a.shape;
  const int64_t granules = num_granules(s.tokens), blocks = kGranule / kPanel;
  const int64_t features = div_up(s.head_dim, kPanel);
  pool.run(s.batch * s.num_kv_heads * granules, [&](int64_t index, int) {
    const int64_t b = index / granules / s.num_kv_heads, head = index / granules % s.num_kv_heads;
    const int64_t begin = index % granules * blocks, end = std::min(begin + blocks, div_up(s.tokens, kPanel));
    const Lines k = lines_of(a.k + head_offset(s, b, head, a.k_token_stride), a.k_token_stride);
    for (int64_t block = begin; block < end; ++block)
      pack_panel(k, block * kPanel, std::min(kPanel, s.tokens - block * kPanel), Steps(s.head_dim, 0), 0,
                 features, true, keys.k(b, head, block));
    const Lines v = features_of(a.v + head_offset(s, b, head, a.v_token_stride), a.v_token_stride);
    for (int64_t f = 0; f < features; ++f)
      pack_panel(v, f * kPanel, std::min(kPanel, s.head_dim - f * kPanel), Steps(s.tokens, 0), begin, end,
                 true, keys.v(b, head, f, begin));
  });
}

int64_t forward_scratch_bytes(int64_t head_dim) { return Scratch(Carver(nullptr), head_dim).bytes; }

}  // namespace
}  // namespace bf16

bool attention_has_bf16() { return current_isa() >= Isa::kAvx512Bf16; }

int64_t attention_bf16_forward_workspace_bytes(const AttentionShape& shape, int num_threads) {
  return bf16::PackedKeys::bytes(shape) + num_threads * bf16::forward_scratch_bytes(shape.head_dim);
}

void attention_bf16_forward(const AttentionArgsOf<Bf16>& args, ThreadPool& pool,
                            std::span<std::byte> workspace) {
  check_attention(args);
  const AttentionShape& s = args.shape;
  PLIMSOLL_CHECK(args.cached_keys == 0 && args.start == nullptr, "attention_bf16_forward: no cache");
  PLIMSOLL_CHECK(
      static_cast<int64_t>(workspace.size()) >= attention_bf16_forward_workspace_bytes(s, pool.num_threads()),
      "attention_bf16_forward: workspace");
  const bf16::Kernels& kernels = bf16::current_kernels();
  const bf16::PackedKeys keys(s, workspace.data());
  std::byte* own = workspace.data() + bf16::PackedKeys::bytes(s);
  const int64_t own_bytes = bf16::forward_scratch_bytes(s.head_dim), granules = num_granules(s.tokens);
  const int64_t heads = s.batch * s.num_heads;
  bf16::pack_keys(args, keys, pool);
  // The last granule of queries sees the most keys, so it goes first.
  pool.run(heads * granules, [&](int64_t index, int thread) {
    const int64_t head = index % heads;
    const AttentionTask task{head / s.num_heads, head % s.num_heads, granules - 1 - index / heads};
    const bf16::Scratch scratch(bf16::Carver(own + thread * own_bytes), s.head_dim);
    const int64_t end = std::min((task.granule + 1) * kGranule, s.tokens);
    kernels.begin();
    for (int64_t first = task.granule * kGranule; first < end; first += bf16::kPanel)
      bf16::QueryRows(args, keys, kernels, task, first, scratch).run();
    kernels.end();
  });
}

}  // namespace plimsoll::cpu
