// Arguments of strided.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// n elements of `bytes` (2 or 4): element i of `to`, at axis index j of `extent`, is element (j - start) /
/// step of the same place in `from`, whose axis has `from_extent`; 0 where there is none. step -1: the axis
/// in reverse.
struct AlongAxis {
  const void* from = nullptr;
  void* to = nullptr;
  i64 n = 0, inner = 1, extent = 1, from_extent = 1, start = 0, step = 1;
  int bytes = 4, padding = 0;
};
/// Elements of `x` by an index of that shape: `stride` are x's, 0 along the gathered axis, which has `along`.
struct GatherArgs {
  const void* x = nullptr;
  const int* index = nullptr;
  void* y = nullptr;
  i64 extent[6] = {1, 1, 1, 1, 1, 1}, stride[6] = {}, along = 1, n = 0;
  int bytes = 4, padding = 0;
};
/// dx, n elements of shape `extent`, sums the elements of dy that an index of shape `given` sends there along
/// `axis`.
struct GatherGradArgs {
  Operand dy, dx;
  const int* index = nullptr;
  i64 extent[6] = {1, 1, 1, 1, 1, 1}, given[6] = {1, 1, 1, 1, 1, 1}, n = 0;
  int axis = 0, padding = 0;
};

inline constexpr DeviceKernel<AlongAxis> kAlongAxis{"elementwise/strided", "along_axis"};
inline constexpr DeviceKernel<GatherArgs> kGather{"elementwise/strided", "gather"};
inline constexpr DeviceKernel<GatherGradArgs> kGatherGrad{"elementwise/strided", "gather_grad"};

}  // namespace plimsoll::cuda
