// Kernels of batch normalisation that others run as a part of theirs. Scratch is as large as the `_bytes`.
#pragma once

#include "backends/cuda/kernel.h"

namespace plimsoll::cuda {

/// Of types whose first operand is x.
int64_t batch_statistics_bytes(const ir::OpTypes& types);
Status batch_statistics(const KernelCall& call, Stream& stream);
int64_t batch_norm_bytes(const ir::OpTypes& types);
/// y may lie where x does.
Status batch_norm(const KernelCall& call, Stream& stream);

}  // namespace plimsoll::cuda
