// Batch normalisation. The conventions are those of ops.h.
#pragma once

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

/// Statistics of each channel over all axes but the last: x [..., C] -> mean f32[C] and the *biased* variance
/// f32[C]. Op `batch_statistics`(x). They depend on the whole micro-batch, and backward never computes them
/// again. No derivative of its own: `batch_norm` with {batch} takes it in. Errors: a channel with one value.
struct BatchStatistics {
  ValueId mean, variance;
};
BatchStatistics batch_statistics(Builder& b, ValueId x);

struct BatchNorm {
  double eps = 1e-5;
  bool batch = false;  ///< mean and variance are batch_statistics of x: the derivative goes through them
  bool relu = false;
  int64_t ranks = 1;  ///< with batch: the statistics are those of so many ranks' x (batch_norm_ranks.h)
};
/// y = (x - mean) * (weight * rstd) + bias [+ residual], rstd = 1/sqrt(variance + eps), then max(y, 0) where
/// `relu`. x [..., C], mean, variance, weight and bias [C], residual as x or invalid. Ioffe & Szegedy 2015,
/// arXiv:1502.03167. Op `batch_norm`(x, mean, variance, weight, bias, residual?) {eps, batch?, relu?, ranks?,
/// out?}.
/// Backward keeps x, mean and variance; of the sum with a residual under relu, y, which its readers keep.
/// With M rows, xhat = (x - mean) * rstd and dz = dy where y > 0 (dy without relu):
///   db = sum of dz, dw = sum of dz * xhat, dx = weight * rstd * (dz [- db/M - xhat * dw/M with batch])
/// Op `batch_norm_grad`(dy, x, mean, variance, weight, bias, acc_dw?, acc_db?) {eps, batch?, relu?, frozen?,
/// dw?} -> dx, dw, db; of relu with a residual `batch_norm_add_grad`(dy, x, mean, variance, weight, y,
/// acc_dw?, acc_db?, dy2?) {eps, batch?, frozen?, out?, dw?} -> dx, d_residual = dz, dw, db; {out} is
/// d_residual's dtype, and a dy2 that is given is added to dy. With {frozen} there are no dw and db.
ValueId batch_norm(Builder& b, ValueId x, ValueId mean, ValueId variance, ValueId weight, ValueId bias,
                   ValueId residual, const BatchNorm& how);

}  // namespace plimsoll::ops
