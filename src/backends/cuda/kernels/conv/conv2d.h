// The convolution's kernel, for those that do more with its result. Scratch is as large as conv2d_bytes.
#pragma once

#include "backends/cuda/kernel.h"

namespace plimsoll::cuda {

/// Of types whose first operands are x and the weight, and whose first result is y.
int64_t conv2d_bytes(const ir::OpTypes& types);
/// Operands x, weight, bias?.
Status conv2d(const KernelCall& call, Stream& stream);

}  // namespace plimsoll::cuda
