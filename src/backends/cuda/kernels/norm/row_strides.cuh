// The offset of each row of an operand that may be a view of heads.
#pragma once

#include "backends/cuda/device/place.cuh"
#include "backends/cuda/kernels/norm/row_strides_args.h"

namespace plimsoll::cuda {

__device__ __forceinline__ i64 row_begin(const RowStrides& rows, i64 i) {
  if (rows.group == 0) return i * rows.stride;
  const Place at = place_of(i, rows.group);
  return at.row * rows.group_stride + at.col * rows.stride;
}
// Whether all rows begin at multiples of eight elements.
__device__ __forceinline__ bool by_eights(const RowStrides& rows) {
  return rows.stride % 8 == 0 && rows.group_stride % 8 == 0;
}

}  // namespace plimsoll::cuda
