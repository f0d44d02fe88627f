// The operands of a norm, for kernels that do more with what it computes.
#pragma once

#include "backends/cuda/kernels/norm/norm_args.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {

struct NormForm {
  bool is_layer = false;  ///< of layer_norm, else of rms_norm
  bool adds = false;      ///< the residual goes before
  bool stores = true;     ///< what it computes is a result
};
/// Operands in order: x, residual, weight, bias; results: sum, y, mean, rstd; of each those that the form
/// has.
NormRows norm_rows(const KernelCall& call, const NormForm& form);

/// Of a block that takes a row, eight elements a thread.
Dim row_threads(int64_t cols);

}  // namespace plimsoll::cuda
