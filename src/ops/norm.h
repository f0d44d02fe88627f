// Norms over the last axis. The conventions are those of ops.h.
#pragma once

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

// ---- normalisation (rms_norm.cpp, layer_norm.cpp)

struct RmsNorm {
  ValueId y, rstd;
};
/// y = (x * rstd) * weight, rstd = 1/sqrt(mean(x^2) + eps), over the last axis; x [..., H], weight [H] ->
/// y [..., H], rstd [...]. Zhang & Sennrich 2019, arXiv:1910.07467. Op `rms_norm` {eps, out?};
/// `rms_norm_grad`(dy, x, weight, rstd, acc_dw?) -> dx, dw. With xhat = x*rstd, c = mean(dy*weight*xhat):
/// dx = rstd * (dy*weight - xhat*c), dw = sum over rows of dy*xhat. With {frozen} the gradients of both
/// norms, fused too, give dx alone: the parameters do not learn. They store dx in {dx?}, else in x's dtype,
/// and with {rounded?} a rounded copy of it as the last result (rounded_copy.h).
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

}  // namespace plimsoll::ops
