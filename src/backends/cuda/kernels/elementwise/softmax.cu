// Softmax and its slope: a block a row.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/softmax_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void softmax(SoftmaxArgs args) {
  begin_grid();
  __shared__ float shared[32];
  const i64 row = blockIdx.x * args.cols;
  float most = load(args.x, row);
  for (i64 i = threadIdx.x; i < args.cols; i += blockDim.x) {
    const float x = load(args.x, row + i);
    most = x > most ? x : most;
  }
  most = block_max(most, shared);
  float sum = 0.0f;
  for (i64 i = threadIdx.x; i < args.cols; i += blockDim.x) sum += expf(load(args.x, row + i) - most);
  sum = block_sum(sum, shared);
  const float factor = 1.0f / sum, shift = most + logf(sum);
  for (i64 i = threadIdx.x; i < args.cols; i += blockDim.x) {
    const float x = load(args.x, row + i);
    store(args.out, row + i, args.log ? x - shift : expf(x - most) * factor);
  }
}

extern "C" __global__ void softmax_grad(SoftmaxArgs args) {
  begin_grid();
  __shared__ float shared[32];
  const i64 row = blockIdx.x * args.cols;
  float sum = 0.0f;
  for (i64 i = threadIdx.x; i < args.cols; i += blockDim.x) {
    const float d = load(args.dy, row + i);
    sum += args.log ? d : d * load(args.x, row + i);
  }
  sum = block_sum(sum, shared);
  for (i64 i = threadIdx.x; i < args.cols; i += blockDim.x) {
    const float d = load(args.dy, row + i), y = load(args.x, row + i);
    store(args.out, row + i, args.log ? d - expf(y) * sum : y * (d - sum));
  }
}

}  // namespace plimsoll::cuda
