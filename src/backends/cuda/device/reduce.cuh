// Sums and maxima over the threads of a block, in a fixed order, and granules of rows.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

// The same sum in every run: a butterfly. All threads of a warp call it, all get the sum.
template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}
__device__ __forceinline__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset >>= 1)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

// Within a warp, then the warps in order. All threads of the block call it, with a shared array of an element
// for each warp; all get the sum.
template <typename T>
__device__ __forceinline__ T block_sum(T value, T* shared) {
  value = warp_sum(value);
  const int warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[warp] = value;
  __syncthreads();
  T sum = 0;
  for (int w = 0; w < warps; ++w) sum += shared[w];
  return sum;
}

__device__ __forceinline__ float block_max(float value, float* shared) {
  value = warp_max(value);
  const int warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[warp] = value;
  __syncthreads();
  float most = shared[0];
  for (int w = 1; w < warps; ++w) most = fmaxf(most, shared[w]);
  return most;
}

__device__ __forceinline__ i64 granule_begin(const DeviceGranules& g, i64 i) {
  return i / g.per_segment * g.segment + i % g.per_segment * kGranuleRows;
}
__device__ __forceinline__ i64 granule_end(const DeviceGranules& g, i64 i) {
  const i64 end = granule_begin(g, i) + kGranuleRows, limit = (i / g.per_segment + 1) * g.segment;
  return end < limit ? end : limit;
}

}  // namespace plimsoll::cuda
