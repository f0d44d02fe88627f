// Reductions over any axes: a block for a chunk of a result where the last axis goes, else a thread a result.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/reduce_axes_args.h"

namespace plimsoll::cuda {

__device__ __forceinline__ i64 offset_in(const DeviceAxes& axes, i64 i) {
  i64 offset = 0;
  for (int axis = 5; axis >= 0; --axis) {
    const Place place = place_of(i, axes.extent[axis]);
    offset += place.col * axes.stride[axis];
    i = place.row;
  }
  return offset;
}

__device__ __forceinline__ float reduced(const ReduceArgs& args, float a, float b) {
  if (args.kind != ReduceKind::kMax) return a + b;
  return b > a || b != b ? b : a;
}
__device__ __forceinline__ float neutral(const ReduceArgs& args) {
  return args.kind == ReduceKind::kMax ? -__int_as_float(0x7f800000) : 0.0f;
}
__device__ __forceinline__ void write_result(const ReduceArgs& args, i64 result, float value) {
  if (args.kind == ReduceKind::kMean) value /= (float)args.gone;
  if (args.acc != nullptr) value = args.acc[result] + value;
  store(args.out, result, value);
}

// 256 threads.
extern "C" __global__ void reduce_chunks(ReduceArgs args) {
  begin_grid();
  __shared__ float shared[256];
  const i64 result = blockIdx.x / args.chunks, chunk = blockIdx.x % args.chunks;
  const i64 begin = chunk * args.per_chunk;
  const i64 end = begin + args.per_chunk < args.gone ? begin + args.per_chunk : args.gone;
  const i64 base = offset_in(args.kept_axes, result);
  float value = neutral(args);
  for (i64 i = begin + threadIdx.x; i < end; i += 256)
    value = reduced(args, value, load(args.x, base + offset_in(args.gone_axes, i)));
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = 128; half > 0; half >>= 1) {
    if ((int)threadIdx.x < half)
      shared[threadIdx.x] = reduced(args, shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  if (args.chunks == 1)
    write_result(args, result, shared[0]);
  else
    args.partials[blockIdx.x] = shared[0];
}

extern "C" __global__ void reduce_partials(ReduceArgs args) {
  begin_grid();
  const i64 result = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (result >= args.results) return;
  float value = args.partials[result * args.chunks];
  for (i64 c = 1; c < args.chunks; ++c) value = reduced(args, value, args.partials[result * args.chunks + c]);
  write_result(args, result, value);
}

extern "C" __global__ void reduce_columns(ReduceArgs args) {
  begin_grid();
  const i64 result = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (result >= args.results) return;
  const i64 base = offset_in(args.kept_axes, result);
  float total = neutral(args);
  for (i64 begin = 0; begin < args.gone; begin += kGranuleRows) {
    const i64 end = begin + kGranuleRows < args.gone ? begin + kGranuleRows : args.gone;
    float granule = neutral(args);
    for (i64 i = begin; i < end; ++i)
      granule = reduced(args, granule, load(args.x, base + offset_in(args.gone_axes, i)));
    total = reduced(args, total, granule);
  }
  write_result(args, result, total);
}

}  // namespace plimsoll::cuda
