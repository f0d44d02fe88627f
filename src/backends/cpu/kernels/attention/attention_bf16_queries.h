// The backward pass of attention on bf16 where a granule of keys meets a block of queries: what they work on
// and with. attention_bf16_backward.cpp has the tasks.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/attention/attention_bf16.h"
#include "backends/cpu/kernels/attention/attention_bf16_blocks.h"
#include "backends/cpu/kernels/attention/attention_bf16_scratch.h"
#include "backends/cpu/kernels/gemm/gemm_bf16.h"

namespace plimsoll::cpu::bf16 {

/// Blocks of 32 in a granule of keys, and in a block of queries: the more of these, the fewer times dk and dv
/// are taken up and put down; what is packed of them should lie in the second-level cache.
inline constexpr int64_t kKeyBlocks = kGranule / kPanel, kRowBlocks = 4;
inline constexpr int64_t kQueries = kRowBlocks * kPanel;

/// A thread's own memory; `features` are blocks of 32 of head_dim.
struct BackwardScratch {
  std::byte *keys_t, *values_t;    ///< B: [kKeyBlocks][features] steps, keys as columns
  std::byte* keys;                 ///< B: [features][kKeyBlocks] steps, features as columns
  float *dkeys_t, *dvalues_t;      ///< [kKeyBlocks][features] blocks, features as rows
  std::byte *queries, *douts;      ///< A: [kRowBlocks][features] steps, queries as rows
  std::byte *queries_t, *douts_t;  ///< A: [features][kRowBlocks] steps, features as rows
  float *scores, *dprobs;          ///< a block each
  std::byte *probs, *dscores;      ///< B: [kRowBlocks] steps of a block of keys, keys as columns
  std::byte* dscores_a;            ///< A: [kRowBlocks][kKeyBlocks] steps, queries as rows
  float* dqueries;                 ///< [kRowBlocks][features] blocks
  GradientRows* rows;              ///< [kRowBlocks]
  KeptWeights* kept;
  int64_t bytes = 0;

  BackwardScratch(Carver carver, int64_t head_dim);
};

/// A granule of the keys of a sequence's key-value head.
struct KeyGranule {
  const AttentionBackwardArgsOf<Bf16>& args;
  const Kernels& kernels;
  const BackwardScratch& s;
  MaskView mask;
  int64_t b = 0, kv_head = 0, index = 0;
  int64_t begin = 0, num_keys = 0;  ///< in the sequence
  int64_t features = 0;

  [[nodiscard]] const AttentionShape& shape() const { return args.forward.shape; }
  [[nodiscard]] int64_t key_blocks() const { return div_up(num_keys, kPanel); }
  /// Tiles of 16 in a block of features.
  [[nodiscard]] int tiles(int64_t feature) const { return shape().head_dim - feature * kPanel > 16 ? 2 : 1; }
};

/// kQueries queries of a head against a granule of keys.
class QueryBlock {
 public:
  QueryBlock(const KeyGranule& granule, int64_t head, int64_t first);

  [[nodiscard]] int64_t row_blocks() const { return row_blocks_; }
  /// The granules whose keys the queries may see.
  [[nodiscard]] int64_t first_granule() const { return first_granule_; }
  [[nodiscard]] int64_t last_granule() const { return last_granule_; }
  /// Whether they see any key of this one.
  [[nodiscard]] bool sees_granule() const;

  /// Packs the queries and dout.
  void load() const;
  /// dk and dv += what the queries give; leaves dS for dq. Asks for the memory of the queries that come next,
  /// from `next_first` of `next_head` on, as it goes.
  void add_dkeys(int64_t next_head, int64_t next_first) const;
  /// sums [features] blocks = or += dq of a block of 32 queries by these keys; false if it sees none of them.
  bool add_dqueries(int64_t row_block, bool from_zero, float* sums) const;

 private:
  void differentiate_pair(int64_t key_block, int64_t row_block) const;
  void contract_queries(int64_t key_block, int64_t begin, int64_t end) const;

  const KeyGranule& g_;
  int64_t head_, first_, row_blocks_, first_granule_, last_granule_;
  SeenKeys seen_[kRowBlocks];
};

}  // namespace plimsoll::cpu::bf16
