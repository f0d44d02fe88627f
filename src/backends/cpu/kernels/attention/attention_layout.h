// Sizes and addresses that the passes of attention share and that no instruction set changes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernels/attention/attention.h"
#include "base/check.h"

namespace plimsoll::cpu {

/// Queries of a block and keys of a tile: a tile of scores is 16 KiB, so it and an operand stay in a 32 or 48
/// KiB L1 cache.
inline constexpr int kBlock = 64;
/// Keys of a backward task. Gradients of queries are summed over one granule, then granule by granule in
/// order.
inline constexpr int64_t kGranule = 256;

inline int64_t num_blocks(int64_t tokens) { return (tokens + kBlock - 1) / kBlock; }
inline int64_t num_granules(int64_t tokens) { return (tokens + kGranule - 1) / kGranule; }
/// head_dim rounded up to whole vectors of the widest instruction set.
inline int64_t padded_head_dim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }

/// Who sees whom in one sequence: i sees j if j >= lower_key(i) and i >= lower_query(j). i and j are
/// positions in the sequence; queries are those of [start, start + queries), keys those of [0, tokens).
struct MaskView {
  int64_t tokens = 0;
  int64_t start = 0, queries = 0;
  bool causal = true;
  int64_t window = 0;
  const int32_t* doc_start = nullptr;  ///< this sequence's

  [[nodiscard]] int32_t lower_key(int64_t i) const {
    const int64_t by_window = window > 0 ? std::max<int64_t>(0, i - window + 1) : 0;
    return std::max(static_cast<int32_t>(by_window), doc_start ? doc_start[i] : 0);
  }
  [[nodiscard]] int32_t lower_query(int64_t j) const {
    return causal ? static_cast<int32_t>(j) : lower_key(j);  // a window has two sides alike
  }
  /// Behind the last key that queries up to `last` may see, documents aside.
  [[nodiscard]] int64_t end_of_keys(int64_t last) const {
    if (causal) return std::min(last + 1, tokens);
    return window > 0 ? std::min(last + window, tokens) : tokens;
  }
};

/// Keys and values of a sequence.
template <typename Element>
int64_t cached_or_own_keys(const AttentionArgsOf<Element>& args) {
  return args.cached_keys > 0 ? args.cached_keys : args.shape.tokens;
}

template <typename Element>
MaskView mask_of(const AttentionArgsOf<Element>& args, int64_t b) {
  return {.tokens = cached_or_own_keys(args),
          .start = args.start != nullptr ? args.start[b] : 0,
          .queries = args.shape.tokens,
          .causal = args.causal,
          .window = args.window,
          .doc_start = args.doc_start ? args.doc_start + b * args.shape.tokens : nullptr};
}

/// A task of either pass: one granule of one head of one sequence. Tasks are numbered granule by granule, in
/// the order of what a causal mask leaves them to do, the most first.
struct AttentionTask {
  int64_t b = 0, h = 0, granule = 0;
};

/// What the weights of one head of one sequence draw from.
inline ops::RandomStream dropout_stream(const AttentionDropout& dropout, int64_t b, int64_t h) {
  ops::RandomStream stream = ops::attention_stream(dropout.stream, h);
  stream.sequence += static_cast<uint32_t>(b);
  return stream;
}

/// Address of a head's row 0 in a [batch, tokens, heads, head_dim] operand with a token stride.
inline int64_t head_offset(const AttentionShape& s, int64_t b, int64_t head, int64_t token_stride) {
  return b * s.tokens * token_stride + head * s.head_dim;
}

/// The same for keys and values.
template <typename Element>
int64_t key_head_offset(const AttentionArgsOf<Element>& args, int64_t b, int64_t head, int64_t token_stride) {
  return b * cached_or_own_keys(args) * token_stride + head * args.shape.head_dim;
}

/// Aborts on shapes and strides that no caller may pass.
template <typename Element>
void check_attention(const AttentionArgsOf<Element>& args) {
  const AttentionShape& s = args.shape;
  PLIMSOLL_CHECK(s.batch >= 0 && s.tokens >= 0 && s.tokens < (int64_t{1} << 31) - kBlock,
                 "attention: batch or tokens");
  PLIMSOLL_CHECK(s.num_kv_heads >= 1 && s.num_heads % s.num_kv_heads == 0 && s.head_dim >= 1,
                 "attention: heads");
  PLIMSOLL_CHECK(args.window >= 0, "attention: window");
  PLIMSOLL_CHECK(args.start == nullptr || args.doc_start == nullptr, "attention: start and doc_start");
}

}  // namespace plimsoll::cpu
