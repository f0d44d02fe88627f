// Parts of batch normalisation that the kernels of fused convolutions share.
#pragma once

#include "backends/cpu/kernels/norm/channels.h"

namespace plimsoll::cpu {

/// Statistics of each channel of x, as `batch_statistics` gives them, from channel_moments of all its
/// granules: `means`, and the sums of squared differences share_elements(x) behind them.
void join_channel_moments(const ir::Shape& x, const float* means, const TensorRef& mean,
                          const TensorRef& variance, ThreadPool& pool);

/// Numbers of each channel as f32, in scratch [4, channels].
struct BatchNormCoefficients {
  float *weight, *shift, *rstd, *scale;
};
/// `bias` may be absent; then `shift` is not set.
BatchNormCoefficients prepare_batch_norm(const TensorRef& variance, const TensorRef& weight,
                                         const TensorRef& bias, double eps, float* scratch);

}  // namespace plimsoll::cpu
