// Arguments of sums.cu.
#pragma once

#include "backends/cuda/kernels/norm/row_strides_args.h"

namespace plimsoll::cuda {

/// Sums over a granule's rows of dy, or, with `rstd`, of dy * (x - mean) * rstd, into partial [granules,
/// cols].
struct ColumnSums {
  Operand dy, x;
  const float *mean = nullptr, *rstd = nullptr;
  float* partial = nullptr;
  DeviceGranules granules;
  i64 cols = 0;
  RowStrides dy_rows, x_rows;
};
/// A block takes so many columns of one granule, with so many threads for each.
constexpr int kColumnsOfBlock = 32, kRowsOfBlock = 8;
/// out = acc, where given, then the granules in order.
struct AddPartials {
  const float* partial = nullptr;
  i64 granules = 0, cols = 0;
  Operand acc, out;
};

inline constexpr DeviceKernel<ColumnSums> kSumColumns{"norm/sums", "sum_columns"};
inline constexpr DeviceKernel<AddPartials> kAddPartials{"norm/sums", "add_partials"};

}  // namespace plimsoll::cuda
