// Linear layers, and weights by direction and magnitude. The conventions are those of ops.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

// ---- linear maps (linear.cpp)

/// x [..., in], weight [out, in] (or [in, out] where `transposed`, as GPT-2's Conv1D), bias [out] or absent
/// -> [..., out]. Op `linear`(x, weight, bias?) {transposed, fp8?, precision?, out?}; `fp8` asks the pass of
/// that name for quantised operands, here and in the derivatives.
/// vjp: dx = linear(dy, weight) {!transposed}; `linear_dw`(x, dy, acc?) {transposed, fp8?, precision?, out?}
/// -> as weight, a reduction over rows; db = `sum_rows`(dy, acc?) {out?} -> [out]; both in one op:
/// `linear_dw_db`(x, dy, acc?, bias_acc?) {…, bias_out?}, which pass fuse_bias_grads brings in. `linear_few`
/// is the same map for the few rows of a decoding step: weights are read once and not packed, so its sums
/// have another order; no derivative. Pass small_m brings it in.
ValueId linear(Builder& b, ValueId x, ValueId weight, ValueId bias, bool transposed = false);
/// Of linear_dw_db: the dtype of the bias's gradient.
inline constexpr std::string_view kBiasOut = "bias_out";
/// base [..., width] with x [..., in] times weight [out, in] added to its columns from `column` on: a product
/// of few terms beside a large one, whose place the result takes. The bits are those of `add`(base, `linear`)
/// with the product in base's dtype. Op `linear_add`(x, weight, base) {column, transposed, precision?}.
/// vjp: those of `linear` by the columns of dy; dbase = dy.
ValueId linear_add(Builder& b, ValueId x, ValueId weight, ValueId base, int64_t column = 0);

// ---- weights by direction and magnitude (dora.cpp)

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

}  // namespace plimsoll::ops
