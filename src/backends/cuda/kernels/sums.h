// Sums over the rows of an operand, in granules (ops.h).
#pragma once

#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {

/// What is summed over rows: dy, or with rstd dy * (x - mean) * rstd.
struct ColumnSum {
  TensorRef dy, x = {};
  const float *mean = nullptr, *rstd = nullptr;
};
/// [granules, cols] of f32.
inline int64_t column_sum_elements(const ir::Shape& dy) { return Granules(dy).count() * dy.dim(-1); }
/// out [cols] = acc, where that is given, and the granules' sums in order. `partial`: column_sum_elements().
Status sum_columns(const ColumnSum& sum, float* partial, const TensorRef& acc, const TensorRef& out,
                   Stream& stream);

}  // namespace plimsoll::cuda
