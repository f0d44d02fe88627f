// Arguments of soft_loss.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Rows of logits against targets spread over classes: hard * share at class `targets`, hard * (1 - share) at
/// class `second`, `rest` at every class; without second and share all of `hard` at class `targets`.
struct SoftLossRows {
  Operand logits = {}, d = {};  // d: where the gradient goes, absent for the loss
  const int *targets = nullptr, *second = nullptr;
  const float *share = nullptr, *given_lse = nullptr, *scale = nullptr;
  float *loss = nullptr, *lse = nullptr;
  double hard = 1, rest = 0;
  i64 cols = 0, stride = 0;
};

inline constexpr DeviceKernel<SoftLossRows> kSoftLossRows{"loss/soft_loss", "soft_loss_rows"};
inline constexpr DeviceKernel<SoftLossRows> kSoftLossGrad{"loss/soft_loss", "soft_loss_grad"};

}  // namespace plimsoll::cuda
