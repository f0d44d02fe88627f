// Builder functions of ops for models, optimizers and derivatives: a function an op. Each appends to the
// builder's graph.
//
// Conventions. B sequences of T tokens; the last axis is the feature axis. An optional operand is a
// ValueId{}. A reduction over rows (weight, bias and norm gradients, losses) runs in granules of kGranule
// rows, restarting at each index of axis 0 where the operand has rank >= 3 (a sequence), in order: first - or
// onto `acc`, where that is given and consumed - is stored, the others are added. So the bits do not depend
// on how the batch is split into micro-batches. The order within a granule is the kernel's, fixed for an
// instruction set.
//
// Dtypes. "Floating" operands are f32, bf16 or f16, each as it comes; arithmetic and statistics are f32, and
// a result is rounded once, when it is stored. Unless its line says otherwise a result has the dtype of the
// first operand, where two tensors are added or multiplied f32 if they differ; a gradient has that of what it
// is the gradient of, given by {out} where that is no operand. Statistics (rstd, mean, lse), losses and
// run-time scalars are f32. Ops with matrix products have {precision}: "tf32", "bf16", "f16" rounds their
// operands to that before they are multiplied (absent: as stored); sums are f32. Gradients of norms and of
// head and loss have {dw}: the dtype of their parameters' gradients, which accumulators then have (absent:
// the parameter's).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/builder.h"
#include "ops/gelu.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

inline constexpr int64_t kGranule = 256;

// ---- structure (structure.cpp, views.cpp, copies.cpp)
// ------------------------------------------------------------------------------- `state` {name} and
// `state_assign` {name}: Builder::read and Builder::assign.

/// The same elements in another shape; a view. Op `reshape` {shape}.
ValueId reshape(Builder& b, ValueId x, std::vector<int64_t> shape);
/// Cuts the last axis into parts of `sizes`; views. Op `split` {sizes}.
std::vector<ValueId> split(Builder& b, ValueId x, std::vector<int64_t> sizes);
/// Joins along the last axis; a copy. Op `concat`.
ValueId concat(Builder& b, std::vector<ValueId> parts);
/// Joins along the first axis, storages of weights that one product reads; a copy. `name`: of the whole, for
/// people. Op `concat_rows` {name?}. Rows of a gradient by `linear_dw` or `sum_rows` are computed apart.
/// (rows.cpp)
ValueId concat_rows(Builder& b, std::vector<ValueId> parts, const std::string& name = {});
/// Cuts the first axis into parts of `sizes`; views.
std::vector<ValueId> split_rows(Builder& b, ValueId x, const std::vector<int64_t>& sizes);
/// A dense copy, of a view too. Op `copy`.
ValueId copy(Builder& b, ValueId x);
/// Begins to copy x into memory of `to`, another space than x's, on a copy queue: kCopyIn to the device,
/// kCopyOut else. Nothing but copy_done reads the result; x may be read meanwhile. Op `copy_start` {to}.
ValueId copy_start(Builder& b, ValueId x, ir::MemorySpace to);
/// The copy that has ended, of a copy_start's result; until here its source lives. Op `copy_done`(copy, x).
ValueId copy_done(Builder& b, ValueId copy);
/// The same values as f32, bf16 or f16, rounded to nearest even; x itself where it is that already. Op `cast`
/// {out?}, absent for f32; its derivative casts back.
ValueId cast(Builder& b, ValueId x, ir::DType dtype);
/// A constant f32 tensor. Op `fill` {shape, value}.
ValueId fill(Builder& b, std::vector<int64_t> shape, double value);

// ---- elementwise (elementwise.cpp); f32, results may take the place of an operand
// ------------------------------

/// a + b, same shapes. Op `add`.
ValueId add(Builder& b, ValueId x, ValueId y);
/// a * b, same shapes. Op `mul`.
ValueId mul(Builder& b, ValueId x, ValueId y);
/// x * s, s a run-time scalar f32[1]. Op `scale`.
ValueId scale(Builder& b, ValueId x, ValueId s);
/// x + bias, bias [last axis]. Op `bias_add`.
ValueId bias_add(Builder& b, ValueId x, ValueId bias);
/// silu(x) = x * s, s = sigmoid(x). Op `silu`; `silu_grad`(dy, x) = dy * (s * (1 + x * (1 - s))).
ValueId silu(Builder& b, ValueId x);
/// One of the forms of gelu.h. Op `gelu` {approximate}; `gelu_grad`(dy, x) {approximate}.
ValueId gelu(Builder& b, ValueId x, Gelu form);

// ---- fused activations (activation.cpp); the same bits as what they replace
// -----------------------------------

/// gate_up [..., 2F], gate first -> silu(gate) * up [..., F]. Shazeer 2020, arXiv:2002.05202.
/// Op `swiglu`; `swiglu_grad`(dy, gate_up) -> d_gate_up: d_gate = silu_grad(dy * up, gate), d_up = dy *
/// silu(gate).
ValueId swiglu(Builder& b, ValueId gate_up);
/// gelu(x + bias). Op `bias_gelu` {approximate}; `bias_gelu_grad`(dy, x, bias) -> d(x + bias).
ValueId bias_gelu(Builder& b, ValueId x, ValueId bias, Gelu form);

// ---- random (random.cpp): Philox-4x32-10 (Salmon et al. 2011), keyed so that a batch split otherwise, or a
// recomputation, draws the same numbers. `random` is the step's i32[4]: seed low, seed high, step, index in
// the effective batch of the first sequence of this micro-batch. Counter: (element of the sequence / 4,
// sequence, step, key), key word: seed.
// -------------------------------------------------------------------------------------------

/// x [B, ...]: zero with probability p, else x / (1 - p). Op `dropout`(x, random) {p, key}; its own
/// derivative.
ValueId dropout(Builder& b, ValueId x, ValueId random, double p, int64_t key);
/// Independent normals, Box-Muller on pairs; sequence and step are 0 here, so a value depends on (seed, key,
/// element) alone; another dtype rounds what f32 gives. Op `random_normal`(random) {shape, mean, std, key,
/// out?}.
ValueId random_normal(Builder& b, ValueId random, std::vector<int64_t> shape, double mean, double std,
                      int64_t key, ir::DType dtype = ir::DType::kF32);
/// A key for a named op of a layer: FNV-1a of "layer/name", 63 bits... of which the generator uses 32.
int64_t random_key(std::string_view layer, std::string_view name);

// ---- normalisation (rms_norm.cpp, layer_norm.cpp)
// ---------------------------------------------------------------

struct RmsNorm {
  ValueId y, rstd;
};
/// y = (x * rstd) * weight, rstd = 1/sqrt(mean(x^2) + eps), over the last axis; x [..., H], weight [H] ->
/// y [..., H], rstd [...]. Zhang & Sennrich 2019, arXiv:1910.07467. Op `rms_norm` {eps, out?};
/// `rms_norm_grad`(dy, x, weight, rstd, acc_dw?) -> dx, dw. With xhat = x*rstd, c = mean(dy*weight*xhat):
/// dx = rstd * (dy*weight - xhat*c), dw = sum over rows of dy*xhat.
RmsNorm rms_norm(Builder& b, ValueId x, ValueId weight, double eps);
/// Fused: sum = x + residual, then rms_norm of the sum as it is stored. Op `add_rms_norm`(x, residual,
/// weight) {eps, out?} -> sum, y, rstd. In both {out} is y's dtype. Backward fused: `rms_norm_grad_add`(dy,
/// x, weight, rstd, d_residual, acc_dw?) -> dx = d_residual + rms dx, dw.
struct LayerNorm {
  ValueId y, mean, rstd;
};
/// y = ((x - mean) * rstd) * weight + bias. Ba et al. 2016, arXiv:1607.06450. Op `layer_norm`(x, weight,
/// bias) {eps, out?}; `layer_norm_grad`(dy, x, weight, mean, rstd, acc_dw?, acc_db?) -> dx, dw, db;
/// `add_layer_norm`(x, residual, weight, bias) {eps, out?} -> sum, y, mean, rstd;
/// `layer_norm_grad_add`(dy, x, weight, mean, rstd, d_residual, acc_dw?, acc_db?) -> dx, dw, db.
LayerNorm layer_norm(Builder& b, ValueId x, ValueId weight, ValueId bias, double eps);

// ---- linear maps (linear.cpp)
// --------------------------------------------------------------------------------------

/// x [..., in], weight [out, in] (or [in, out] where `transposed`, as GPT-2's Conv1D), bias [out] or absent
/// -> [..., out]. Op `linear`(x, weight, bias?) {transposed, precision?, out?}.
/// vjp: dx = linear(dy, weight) {!transposed}; `linear_dw`(x, dy, acc?) {transposed, precision?, out?} -> as
/// weight, a reduction over rows; db = `sum_rows`(dy, acc?) {out?} -> [out]. `linear_few` is the same map for
/// the few rows of a decoding step: weights are read once and not packed, so its sums have another order; no
/// derivative. Pass small_m brings it in.
ValueId linear(Builder& b, ValueId x, ValueId weight, ValueId bias, bool transposed = false);
/// base [..., width] with x [..., in] times weight [out, in] added to its columns from `column` on: a product
/// of few terms beside a large one, whose place the result takes. The bits are those of `add`(base, `linear`)
/// with the product in base's dtype. Op `linear_add`(x, weight, base) {column, transposed, precision?}.
/// vjp: those of `linear` by the columns of dy; dbase = dy.
ValueId linear_add(Builder& b, ValueId x, ValueId weight, ValueId base, int64_t column = 0);

// ---- weights by direction and magnitude (dora.cpp)
// -------------------------------------------------------------

/// Where a matrix lies in storages that hold several.
struct DoraRows {
  int64_t row = 0;       ///< first row of the weight
  int64_t rank_row = 0;  ///< first row of A
  double scale = 1;
  bool transposed = false;  ///< the weight is [in, out]: `row` is a column
};
/// |W_o + scale sum over k of B[o,k] A_k| of each row o: weight W [.., in] (f32, bf16 or f16), a [.., in], up
/// [out, rank] -> f32[out]. A constant to the gradient. Liu et al. 2024, arXiv:2402.09353, 4.3. Op
/// `dora_norm`(weight, a, b) {row, rank_row, scale, transposed}.
ValueId dora_norm(Builder& b, ValueId weight, ValueId a, ValueId up, const DoraRows& rows);
/// x times magnitude / norm over the last axis; magnitude and norm f32[out]. Op `dora_scale`;
/// `dora_scale_grad`(dy, x, norm) = dy x / norm, whose `sum_rows` is the magnitude's gradient.
ValueId dora_scale(Builder& b, ValueId x, ValueId magnitude, ValueId norm);

// ---- embedding (embedding.cpp)
// ---------------------------------------------------------------------------------

/// table [V, H], ids i32[B, T] in [0, V) (whoever writes ids has checked them) -> f32[B, T, H]. Op
/// `embedding` {out?}. `embedding_grad`(dy, ids, acc?) {rows, out?}: row v is the sum of its tokens' dy in
/// order, from -0.0 (the neutral element) or onto acc. Fused for tied heads: `embedding_grad_add`(total, dy,
/// ids) = total + embedding_grad(dy, ids), touching the rows of `ids` alone; consumes total. All three take
/// {padding}, absent for none: tokens of that id add nothing to the gradient (torch's padding_idx).
ValueId embedding(Builder& b, ValueId table, ValueId ids, std::optional<int64_t> padding = {});

// ---- beside an embedding (embedding_adapters.cpp)
// -------------------------------------------------------------

/// Columns: table f32[r, V], ids i32[B, T] -> f32[B, T, r]. Op `embedding_columns` {padding};
/// `embedding_columns_grad`(dy, ids, acc?) {columns, padding, out?} sums as embedding_grad does.
ValueId embedding_columns(Builder& b, ValueId table, ValueId ids, std::optional<int64_t> padding = {});
/// x f32[B, T, H], with rows f32[n, H] in place of what stands where ids i32[B, T] are `tokens`, which
/// ascend. Op `token_rows`(x, rows, ids) {tokens}; `token_rows_grad`(dy, ids, acc?) {tokens, out?} is the
/// gradient of the rows, summed as embedding_grad's.
ValueId token_rows(Builder& b, ValueId x, ValueId rows, ValueId ids, std::vector<int64_t> tokens);

// ---- positions (positions.cpp)
// ---------------------------------------------------------------------------------

/// i32[batch, tokens]: the index of each token in its sequence, plus start i32[batch] where that is given.
/// Op `positions`(start?) {batch, tokens}.
ValueId positions(Builder& b, int64_t batch, int64_t tokens, ValueId start = {});
/// doc_start i32[B, T], see `attention` -> i32[B, T]: the index of each token in its document. Op
/// `document_positions`(doc_start).
ValueId document_positions(Builder& b, ValueId doc_start);

// ---- rotary positions (rope.cpp)
// -------------------------------------------------------------------------------

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

// ---- attention (attention.cpp)
// ---------------------------------------------------------------------------------

struct AttentionOptions {
  double scale = 1.0;  ///< of the scores
  bool causal = true;
  int64_t window = 0;  ///< token i sees j in (i - window, i]; 0: no window
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
/// Op `attention`(q, k, v, doc_start?, random?) {scale, causal, window, p, key}, the last two with `random`;
/// `attention_grad`(q, k, v, out, lse, dout, doc_start?, random?) -> dq, dk, dv.
/// Fused: `attention_packed`(qkv [B, T, (H+2KV)*D], doc_start?, random?) {heads, kv_heads, head_dim, scale,
/// causal, window, p, key} -> out [B, T, H*D], lse; `attention_packed_grad`(qkv, out, lse, dout, doc_start?,
/// random?) -> dqkv.
Attention attention(Builder& b, ValueId q, ValueId k, ValueId v, ValueId doc_start,
                    const AttentionOptions& options, ValueId random = {});

// ---- generation (kv_cache.cpp)
// -----------------------------------------------------------------------------------

/// Writes x [B, T, KV, D] into rows start[b] .. start[b] + T of cache [B, S, KV, D]; rows at S and beyond are
/// dropped. start i32[B], not negative. Op `cache_update`(cache, x, start) -> cache, consumed.
ValueId cache_update(Builder& b, ValueId cache, ValueId x, ValueId start);
/// Attention of new tokens over a cache that holds them already: q [B, T, H, D], k and v [B, S, KV, D], start
/// i32[B]; token t of row b stands at position p = start[b] + t and sees cached positions j <= p, and
/// p - window < j where `options.window` is positive. p is below S for every token whose result is used.
/// -> out [B, T, H, D]. Op `attention_cached`(q, k, v, start) {scale, window}; no derivative.
ValueId attention_cached(Builder& b, ValueId q, ValueId k, ValueId v, ValueId start,
                         const AttentionOptions& options);

// ---- loss (cross_entropy.cpp, head_loss.cpp)
// --------------------------------------------------------------------

inline constexpr int32_t kIgnoreTarget = -100;

struct CrossEntropy {
  ValueId loss, lse;
};
/// logits [B, T, V], targets i32[B, T] (kIgnoreTarget: counts nowhere), grad_scale f32[1] (what the loss is
/// multiplied with before differentiating: 1/targets of the effective batch times the loss scale; vjp only),
/// acc f32[1] or absent -> loss f32[1] = sum of lse - logit[target], a reduction over rows; lse [B, T].
/// Op `cross_entropy`(logits, targets, grad_scale, acc?); `cross_entropy_grad`(logits, targets, lse,
/// grad_scale) -> (softmax - onehot) * grad_scale, zero rows where ignored. The cotangent of `loss` is taken
/// to be grad_scale.
CrossEntropy cross_entropy(Builder& b, ValueId logits, ValueId targets, ValueId grad_scale, ValueId acc);
/// Fused linear + cross_entropy in chunks of tokens, so that all logits are never there at once: loss, dx and
/// dw in one go. Op `head_loss`(x, weight, targets, grad_scale, acc_loss?, acc_dw?) {grad, only_dx?,
/// transposed, chunk_tokens, precision?, dx?, dw?} -> loss [, dx, dw where grad]; {dx} and {dw} are their
/// dtypes; {only_dx}: the weight is frozen, no dw. Where nothing but the head learns: `head_loss_dw`, the
/// same operands {transposed, chunk_tokens, precision?, dw?} -> loss, dw. The same bits as the unfused ops.
/// {chunk_tokens}: a multiple of kGranule where there is a dw, else of kLossRows (granules.h).

// ---- sequences as a whole (gather_rows.cpp, label_loss.cpp)
// ---------------------------------------------------------------------------------

/// x [B, T, H], index i32[B] in [0, T) (whoever writes it has checked it) -> [B, 1, H]: row index[b] of
/// sequence b. The axis of one row stays, so that each sequence is a granule of its own in what follows: norm
/// and head of pooled rows keep their bits for any split into micro-batches. Op `gather_rows`;
/// `gather_rows_grad`(dy, index) {rows}: the rows among zeros.
ValueId gather_rows(Builder& b, ValueId x, ValueId index);
/// Whether a row of float labels counts, by its first label: a row whose first is NaN counts nowhere.
template <class T>
bool has_labels(T first) {
  return first == first;
}
/// Binary cross-entropy with logits: logits and labels f32[..., C], grad_scale f32[1] and acc f32[1] or
/// absent as in cross_entropy -> f32[1] = sum over rows of the mean over C of log(1 + exp(x)) - y x; a
/// reduction over rows. Op `bce_with_logits`(logits, labels, grad_scale, acc?);
/// `bce_with_logits_grad`(logits, labels, grad_scale) -> (sigmoid(x) - y) * grad_scale / C, zero rows without
/// labels. The cotangent is taken to be grad_scale.
ValueId bce_with_logits(Builder& b, ValueId logits, ValueId labels, ValueId grad_scale, ValueId acc);
/// The same with (x - y)^2. Op `squared_error`(prediction, labels, grad_scale, acc?);
/// `squared_error_grad`(prediction, labels, grad_scale).
ValueId squared_error(Builder& b, ValueId prediction, ValueId labels, ValueId grad_scale, ValueId acc);

// ---- optimizer (optimizer.cpp; update_rules.h has the updates)
// ---------------------------------------------------------------------------------

/// f32[1]: sum of squares in a fixed grid (chunks of 16,384 elements, in double, in order). Op
/// `sum_squares`(x). Over many tensors: `sum_squares_sweep`(x...) -> f32[n]. `rounded`: x is rounded to that
/// dtype first, where it comes in another; f32: as it comes.
ValueId sum_squares(Builder& b, ValueId x, ir::DType rounded = ir::DType::kF32);
/// sqrt of the sum of f32[1] operands, in order, in double. Op `global_norm`(x...).
ValueId global_norm(Builder& b, std::vector<ValueId> squares);
/// min(1, max_norm / (norm + 1e-6)). Op `clip_scale`(norm) {max_norm}.
ValueId clip_scale(Builder& b, ValueId norm, double max_norm);

}  // namespace plimsoll::ops
