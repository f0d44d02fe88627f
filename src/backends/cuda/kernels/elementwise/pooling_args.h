// Arguments of pooling.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Windows along an axis, as ops::PoolAxis.
struct DevicePoolAxis {
  i64 extent = 1, kernel = 1, stride = 1, padding = 0, windows = 1;
};
/// `whole` [N, rows.extent, cols.extent, channels] is an image or its gradient, `parts` [N, rows.windows,
/// cols.windows, channels] what it is pooled to or that gradient; `index` of a maximum, null of a mean.
struct Pooling {
  Operand whole = {}, parts = {};
  unsigned char* index = nullptr;
  DevicePoolAxis rows = {}, cols = {};
  i64 channels = 0, n = 0;  // n: elements of the result
  int skip_padding = 0;
};

inline constexpr DeviceKernel<Pooling> kPool{"elementwise/pooling", "pool"};
inline constexpr DeviceKernel<Pooling> kPoolGrad{"elementwise/pooling", "pool_grad"};

}  // namespace plimsoll::cuda
