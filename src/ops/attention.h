// Attention, in training and over a cache. The conventions are those of ops.h.
#pragma once

#include <cstdint>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

// ---- attention (attention.cpp)

struct AttentionOptions {
  double scale = 1.0;  ///< of the scores
  bool causal = true;
  /// Token i sees j in (i - window, i], or in (i - window, i + window) where it is not causal; 0: no window.
  int64_t window = 0;
  double dropout = 0;  ///< probability with which a weight is dropped after the softmax; below 1
  int64_t key = 0;     ///< of the draws, see `dropout`
};
struct Attention {
  ValueId out, lse;
};
/// q [B, T, H, D], k and v [B, T, KV, D], H a multiple of KV; doc_start i32[B, T] or absent: the index within
/// the sequence of the first token of token t's document; a token
/// sees tokens of its own document alone.
/// -> out [B, T, H, D], lse f32[B, H, T]. Vaswani et al. 2017; tiled as Dao 2023, arXiv:2307.08691.
/// With `random` and options.dropout p > 0 a weight is kept with probability 1 - p and then divided by it, as
/// philox.h lays out; lse is that of all weights.
/// {precision} "tf32" lets a backend round f32 operands of its products, the weights among them, to TF32; it
/// is no part of the definition, as the rounding of weights to 16 bits is none.
/// Op `attention`(q, k, v, doc_start?, random?) {scale, causal, window, p, key, precision}, p and key with
/// `random`;
/// `attention_grad`(q, k, v, out, lse, dout, doc_start?, random?) -> dq, dk, dv.
/// Fused: `attention_packed`(qkv [B, T, (H+2KV)*D], doc_start?, random?) {heads, kv_heads, head_dim, scale,
/// causal, window, p, key, precision} -> out [B, T, H*D], lse; `attention_packed_grad`(qkv, out, lse, dout,
/// doc_start?, random?) -> dqkv.
Attention attention(Builder& b, ValueId q, ValueId k, ValueId v, ValueId doc_start,
                    const AttentionOptions& options, ValueId random = {});

// ---- generation (kv_cache.cpp)

/// Writes x [B, T, KV, D] into rows start[b] .. start[b] + T of cache [B, S, KV, D]; rows at S and beyond are
/// dropped. start i32[B], not negative. Op `cache_update`(cache, x, start) -> cache, consumed.
ValueId cache_update(Builder& b, ValueId cache, ValueId x, ValueId start);
/// Attention of new tokens over a cache that holds them already: q [B, T, H, D], k and v [B, S, KV, D], start
/// i32[B]; token t of row b stands at position p = start[b] + t and sees cached positions j <= p, and
/// p - window < j where `options.window` is positive. p is below S for every token whose result is used.
/// -> out [B, T, H, D]. Op `attention_cached`(q, k, v, start) {scale, window}; no derivative.
ValueId attention_cached(Builder& b, ValueId q, ValueId k, ValueId v, ValueId start,
                         const AttentionOptions& options);

}  // namespace plimsoll::ops
