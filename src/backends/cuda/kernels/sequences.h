// Kernels of sequences.cpp, which the lists of their kind name.
#pragma once

#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {

/// Rows by index, positions.
std::span<const Kernel> row_kernels();
/// bce_with_logits and squared_error.
std::span<const Kernel> label_loss_kernels();
/// The cache of generation, and attention over it.
std::span<const Kernel> kv_cache_kernels();
/// qk_norm_rope and its gradient.
std::span<const Kernel> qk_norm_kernels();

}  // namespace plimsoll::cuda
