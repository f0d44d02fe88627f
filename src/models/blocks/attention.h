// Causal self-attention of a layer, with the cache of keys and values that generation keeps.
//
//   x ─ qkv ─ split ─ q ─ [norm] ─ [rotation] ─┐
//                   ─ k ─ [norm] ─ [rotation] ─┼─ attention ─ out
//                   ─ v ───────────────────────┘
#pragma once

#include <string>

#include "models/language_model.h"
#include "models/linear.h"
#include "ops/attention.h"

namespace plimsoll::models {

/// The attention of one layer by the names of its parameters.
struct AttentionSpec {
  LinearSpec qkv;  ///< rows of q, then k, then v
  LinearSpec out;
  int64_t heads = 1, kv_heads = 1, head_dim = 1;
  std::string q_norm = {}, k_norm = {};  ///< RMS norms of each head's queries and keys; empty: none
  double norm_eps = 0;
  ir::ValueId rope = {};  ///< ops::rope_table; absent: the layer does not rotate
  ops::AttentionOptions options = {};
  int64_t layer = 0;  ///< names the cache, and is what options.dropout draws by
};

/// x [B, T, hidden] -> [B, T, hidden].
[[nodiscard]] ir::ValueId attention(ir::Builder& b, const Model& model, const Forward& forward,
                                    const AttentionSpec& spec, ir::ValueId x);

/// Causal attention of q [B, T, heads, head_dim] over k and v [B, T, kv_heads, head_dim] and, in generation,
/// over what the layer's cache holds before them. `layer` names the cache, and is what options.dropout draws
/// by, in training alone.
[[nodiscard]] ir::ValueId attend(ir::Builder& b, const Forward& forward, ir::ValueId q, ir::ValueId k,
                                 ir::ValueId v, const ops::AttentionOptions& options, int64_t layer);

/// i32[B, T] positions of the tokens; absent where they are 0..T-1 in every row.
[[nodiscard]] ir::ValueId positions(ir::Builder& b, const Forward& forward);

}  // namespace plimsoll::models
