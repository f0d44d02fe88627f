// Look-ups in tables, what is beside them, positions. The conventions are those of ops.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

// ---- embedding (embedding.cpp)

/// table [V, H], ids i32[B, T] in [0, V) (whoever writes ids has checked them) -> f32[B, T, H]. Op
/// `embedding` {out?}. `embedding_grad`(dy, ids, acc?) {rows, out?}: row v is the sum of its tokens' dy in
/// order, from -0.0 (the neutral element) or onto acc. Fused for tied heads: `embedding_grad_add`(total, dy,
/// ids) = total + embedding_grad(dy, ids), touching the rows of `ids` alone; consumes total. All three take
/// {padding}, absent for none: tokens of that id add nothing to the gradient (torch's padding_idx).
ValueId embedding(Builder& b, ValueId table, ValueId ids, std::optional<int64_t> padding = {});

// ---- beside an embedding (embedding_adapters.cpp)

/// Columns: table f32[r, V], ids i32[B, T] -> f32[B, T, r]. Op `embedding_columns` {padding};
/// `embedding_columns_grad`(dy, ids, acc?) {columns, padding, out?} sums as embedding_grad does.
ValueId embedding_columns(Builder& b, ValueId table, ValueId ids, std::optional<int64_t> padding = {});
/// x f32[B, T, H], with rows f32[n, H] in place of what stands where ids i32[B, T] are `tokens`, which
/// ascend. Op `token_rows`(x, rows, ids) {tokens}; `token_rows_grad`(dy, ids, acc?) {tokens, out?} is the
/// gradient of the rows, summed as embedding_grad's.
ValueId token_rows(Builder& b, ValueId x, ValueId rows, ValueId ids, std::vector<int64_t> tokens);

// ---- positions (positions.cpp)

/// i32[batch, tokens]: the index of each token in its sequence, plus start i32[batch] where that is given,
/// plus `first`, which is not negative. Op `positions`(start?) {batch, tokens, first?}.
ValueId positions(Builder& b, int64_t batch, int64_t tokens, ValueId start = {}, int64_t first = 0);
/// doc_start i32[B, T], see `attention` -> i32[B, T]: the index of each token in its document, plus `first`.
/// Op `document_positions`(doc_start) {first?}.
ValueId document_positions(Builder& b, ValueId doc_start, int64_t first = 0);

// ---- rotary positions (rope.cpp)

/// inv_freq f32[D/2], positions i32[B, T] or absent (then 0..tokens-1, and the first axis is 1)
/// -> [B or 1, T, D]: D/2 cosines, D/2 sines of position * inv_freq, times `factor`. Angles in double.
/// Op `rope_table`(inv_freq, positions?) {tokens, factor}.
ValueId rope_table(Builder& b, ValueId inv_freq, ValueId positions, int64_t tokens, double factor = 1.0);
/// x [B, T, N, D]; halves (a, c) of each head -> (a*cos - c*sin, c*cos + a*sin); `inverse` flips the sign of
/// sin. Su et al. 2021, arXiv:2104.09864, in the half-split layout of Hugging Face. Op `rope`(x, table)
/// {inverse}. Fused: `rope_packed`(x [B, T, N*D], table) {heads, head_dim, inverse} turns the first `heads`
/// heads and leaves the others; in place.
/// With the norms of queries and keys before it: `qk_norm_rope`(qkv [B, T, (H+2KV)*D], q_weight [D],
/// k_weight [D], table) {heads, kv_heads, head_dim, eps} -> y as qkv, q_rstd [B, T, H], k_rstd [B, T, KV]: an
/// rms_norm of each head of q and k, turned; v as it is. `qk_norm_rope_grad`(dy, qkv, q_weight, k_weight,
/// table, q_rstd, k_rstd, acc_dq_weight?, acc_dk_weight?) -> dqkv, dq_weight, dk_weight. The same bits as
/// rms_norm and rope on the parts. (qk_norm.cpp)
ValueId rope(Builder& b, ValueId x, ValueId table);

}  // namespace plimsoll::ops
