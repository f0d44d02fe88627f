// The offset of each row of an operand that may be a view of heads.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Row i begins at element i * stride, or, where rows come in groups (the heads of a token in a packed
/// projection), at i / group * group_stride + i % group * stride.
struct RowStrides {
  i64 stride = 0;
  i64 group = 0;  ///< rows of a group; 0: all rows have one stride
  i64 group_stride = 0;
};

}  // namespace plimsoll::cuda
