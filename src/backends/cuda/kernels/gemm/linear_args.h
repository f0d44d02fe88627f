// Arguments of linear.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// The row in each row of out, n elements.
struct BroadcastRow {
  Operand row, out;
  i64 n = 0, cols = 0;
};
/// Dense sums [n / cols, cols] onto the columns from `first` on of rows of `width`.
struct AddToColumns {
  const float* sums = nullptr;
  Operand out;
  i64 n = 0, cols = 0, width = 0, first = 0;
};

inline constexpr DeviceKernel<BroadcastRow> kBroadcastRow{"gemm/linear", "broadcast_row"};
inline constexpr DeviceKernel<AddToColumns> kAddToColumns{"gemm/linear", "add_to_columns"};

}  // namespace plimsoll::cuda
