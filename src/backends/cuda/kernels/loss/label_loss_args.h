// Arguments of label_loss.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

struct LabelLossRows {
  Operand x;
  const float* labels = nullptr;
  float* losses = nullptr;
  i64 rows = 0, cols = 0;
  int squared = 0;
};
struct LabelLossGrad {
  Operand x;
  const float *labels = nullptr, *scale = nullptr;
  Operand out;
  i64 n = 0, cols = 0;
  int squared = 0;
};

inline constexpr DeviceKernel<LabelLossRows> kLabelLossRows{"loss/label_loss", "label_loss_rows"};
inline constexpr DeviceKernel<LabelLossGrad> kLabelLossGrad{"loss/label_loss", "label_loss_grad"};

}  // namespace plimsoll::cuda
