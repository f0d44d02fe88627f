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
/// Of an op that sums the rows of its first operand: its scratch, and whether a grid holds them (as
/// Kernel::accepts).
int64_t column_sum_bytes(const ir::OpTypes& types);
Status accepts_column_sum(const ir::OpTypes& types, int capability);
/// out [cols] = acc, where that is given, and the rows of partial [granules, cols] in order.
Status add_partials(const float* partial, int64_t granules, int64_t cols, const TensorRef& acc,
                    const TensorRef& out, Stream& stream);
/// The granules' sums of rows added up so. `partial`: column_sum_elements().
Status sum_columns(const ColumnSum& sum, float* partial, const TensorRef& acc, const TensorRef& out,
                   Stream& stream);

}  // namespace plimsoll::cuda
