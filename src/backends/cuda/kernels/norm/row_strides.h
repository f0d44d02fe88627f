// Row strides of an operand for a launch.
#pragma once

#include "backends/cpu/kernels/operands.h"
#include "backends/cuda/kernels/norm/row_strides_args.h"

namespace plimsoll::cuda {

/// Rows over the last axis; the other axes collapse to rows, or to the heads of a token and tokens.
inline RowStrides row_strides(const runtime::TensorRef& ref) {
  const auto rows = cpu::rows_of<const std::byte>(ref);
  return {rows.stride, rows.group, rows.group_stride};
}

}  // namespace plimsoll::cuda
