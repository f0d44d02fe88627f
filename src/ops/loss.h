// Losses: of tokens, of the head in one go, of labels. The conventions are those of ops.h.
#pragma once

#include <cstdint>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

// ---- loss (cross_entropy.cpp, head_loss.cpp)

inline constexpr int32_t kIgnoreTarget = -100;

struct CrossEntropy {
  ValueId loss, lse;
};
/// logits [B, T, V], targets i32[B, T] (kIgnoreTarget: counts nowhere), grad_scale f32[1] (what the loss is
/// multiplied with before differentiating: 1/targets of the effective batch times the loss scale; vjp only),
/// acc f32[1] or absent -> loss f32[1] = sum of lse - logit[target], a reduction over rows; lse [B, T].
/// Op `cross_entropy`(logits, targets, grad_scale?, acc?); `cross_entropy_grad`(logits, targets, lse,
/// grad_scale) -> (softmax - onehot) * grad_scale, zero rows where ignored. The cotangent of `loss` is taken
/// to be grad_scale; where that is absent the loss is a value like others, with the cotangent that it gets.
CrossEntropy cross_entropy(Builder& b, ValueId logits, ValueId targets, ValueId grad_scale, ValueId acc);
/// Fused linear + cross_entropy in chunks of tokens, so that all logits are never there at once: loss, dx and
/// dw in one go. Op `head_loss`(x, weight, targets, grad_scale, acc_loss?, acc_dw?) {grad, only_dx?,
/// transposed, chunk_tokens, precision?, dx?, dw?} -> loss [, dx, dw where grad]; {dx} and {dw} are their
/// dtypes; {only_dx}: the weight is frozen, no dw. Where nothing but the head learns: `head_loss_dw`, the
/// same operands {transposed, chunk_tokens, precision?, dw?} -> loss, dw. The same bits as the unfused ops.
/// {chunk_tokens}: a multiple of kGranule where there is a dw, else of kLossRows (granules.h).

/// x f32[1], whatever it was computed from, as the loss of a program: a view whose cotangent is taken to be
/// grad_scale f32[1]. Op `root_loss`. (views.cpp)
ValueId root_loss(Builder& b, ValueId x, ValueId grad_scale);

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

}  // namespace plimsoll::ops
