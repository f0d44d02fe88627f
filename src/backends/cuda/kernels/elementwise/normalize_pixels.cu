// Pixels to floating numbers: a block fills a table of each channel's 256 numbers, in double, and looks its
// pixels up.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/normalize_pixels_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void normalize_pixels(NormalizePixels args) {
  begin_grid();
  __shared__ float table[16 * 256];
  for (int i = threadIdx.x; i < args.channels * 256; i += blockDim.x)
    table[i] = (float)(((double)(i & 255) * args.rescale - args.mean[i >> 8]) / args.std[i >> 8]);
  __syncthreads();
  const i64 stride = (i64)gridDim.x * blockDim.x;
  for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < args.n; i += stride)
    store(args.out, i, table[(int)(i % args.channels) * 256 + args.pixels[i]]);
}

}  // namespace plimsoll::cuda
