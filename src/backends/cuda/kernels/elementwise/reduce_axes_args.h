// Arguments of reduce_axes.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

enum class ReduceKind : int { kSum = 0, kMean = 1, kMax = 2 };

/// Axes of a view: an element's place is the sum of its indices times strides.
struct DeviceAxes {
  i64 extent[6] = {1, 1, 1, 1, 1, 1}, stride[6] = {};
};
/// Of each result `gone` elements, in `chunks` of `per_chunk`; what chunks give goes to `partials` where
/// there are several.
struct ReduceArgs {
  Operand x, out;
  const float* acc = nullptr;
  float* partials = nullptr;
  DeviceAxes kept_axes, gone_axes;
  i64 results = 0, gone = 0, chunks = 1, per_chunk = 0;
  ReduceKind kind = ReduceKind::kSum;
  int padding = 0;
};

inline constexpr DeviceKernel<ReduceArgs> kReduceChunks{"elementwise/reduce_axes", "reduce_chunks"};
inline constexpr DeviceKernel<ReduceArgs> kReducePartials{"elementwise/reduce_axes", "reduce_partials"};
inline constexpr DeviceKernel<ReduceArgs> kReduceColumns{"elementwise/reduce_axes", "reduce_columns"};

}  // namespace plimsoll::cuda
