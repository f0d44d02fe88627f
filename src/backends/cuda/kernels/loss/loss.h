// Cross-entropy of rows, which cross_entropy and head_loss share.
#pragma once

#include "backends/cuda/kernels/loss/loss_args.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {

/// Scratch for a loss of each row of the first operand.
int64_t row_losses_bytes(const ir::OpTypes& types);
Status loss_rows(const LossRows& rows, int64_t count, Stream& stream);
/// out = acc, where that is given, and the losses of the rows of x in its granules' order.
Status sum_losses(const float* losses, const ir::Shape& x, const TensorRef& acc, const TensorRef& out,
                  Stream& stream);

}  // namespace plimsoll::cuda
