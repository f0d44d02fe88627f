// Cross-entropy of rows, which cross_entropy and head_loss share.
#pragma once

#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {

/// As loss.cu has it.
struct LossRows {
  Operand logits, d;
  const int32_t* targets = nullptr;
  float *loss = nullptr, *lse = nullptr;
  const float *given_lse = nullptr, *scale = nullptr;
  int64_t cols = 0, stride = 0, d_stride = 0;
  int32_t tf32 = 0;
};
Status loss_rows(const LossRows& rows, int64_t count, Stream& stream);
/// out = acc, where that is given, and the losses of the rows of x in its granules' order.
Status sum_losses(const float* losses, const ir::Shape& x, const TensorRef& acc, const TensorRef& out,
                  Stream& stream);

std::span<const Kernel> head_loss_kernels();

}  // namespace plimsoll::cuda
