// Convolutions with what batch normalisation asks of their result, so that a kernel may do it while the
// result lies in the caches. The pass fuse_conv_norms brings them in behind autodiff: they have no
// derivatives.
#pragma once

namespace plimsoll::ops {

/// Op `conv2d_statistics`(x, weight) {as conv2d's} -> y, mean f32[C], variance f32[C]: `conv2d` without a
/// bias and `batch_statistics` of its result, as it is stored. Errors: as theirs.
inline constexpr char kConvStatistics[] = "conv2d_statistics";

/// Op `conv2d_batch_norm`(x, weight, mean, variance, norm_weight, norm_bias, residual?) {as conv2d's, eps,
/// relu?} -> y: `conv2d` without a bias and `batch_norm` by given statistics of its result, which is rounded
/// to y's dtype before it is normalised. norm_weight and norm_bias [C]; residual as y. Errors: as theirs.
inline constexpr char kConvBatchNorm[] = "conv2d_batch_norm";

}  // namespace plimsoll::ops
