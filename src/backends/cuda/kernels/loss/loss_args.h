// Arguments of loss.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Cross-entropy of rows of logits.
struct LossRows {
  Operand logits, d;  // d: where the gradient goes, absent for none
  const int* targets = nullptr;
  float *loss = nullptr, *lse = nullptr;  // of each row, either may be null
  const float *given_lse = nullptr, *scale = nullptr;
  i64 cols = 0, stride = 0, d_stride = 0;
  int tf32 = 0;  // d is rounded to that
};
/// out = acc, where given, and the granules' sums of the rows' losses in order.
struct SumLosses {
  const float* losses = nullptr;
  DeviceGranules granules;
  i64 count = 0;
  const float* acc = nullptr;
  float* out = nullptr;
};
/// Of loss scaling: the norm of scaled gradients, and what they are multiplied with.
struct Unscale {
  const float *norm = nullptr, *scaler = nullptr;
  float max_norm = 0;
  float *out = nullptr, *factor = nullptr;
};
struct NextScale {
  const float *scaler = nullptr, *norm = nullptr;
  double growth = 0, backoff = 0;
  i64 interval = 0;
  float* out = nullptr;
};

inline constexpr DeviceKernel<LossRows> kLossRows{"loss/loss", "loss_rows"};
inline constexpr DeviceKernel<SumLosses> kSumLosses{"loss/loss", "sum_losses"};
inline constexpr DeviceKernel<Unscale> kUnscale{"loss/loss", "unscale"};
inline constexpr DeviceKernel<NextScale> kNextScale{"loss/loss", "next_scale"};

}  // namespace plimsoll::cuda
