// Sums over the rows of an operand: by granules, then the granules in order.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/norm/row_strides.cuh"
#include "backends/cuda/kernels/norm/sums_args.h"

namespace plimsoll::cuda {

// Sums over a granule's rows of dy, or, with `rstd`, of dy * (x - mean) * rstd, into partial [granules,
// cols]. A block takes kColumnsOfBlock columns of one granule.
extern "C" __global__ void sum_columns(ColumnSums a) {
  begin_grid();
  __shared__ float sums[kRowsOfBlock][kColumnsOfBlock + 1];
  const i64 c = blockIdx.x * (i64)kColumnsOfBlock + threadIdx.x, granule = blockIdx.y;
  const i64 begin = granule_begin(a.granules, granule), end = granule_end(a.granules, granule);
  float sum = 0;
  if (c < a.cols)
    for (i64 r = begin + threadIdx.y; r < end; r += kRowsOfBlock) {
      float v = load(a.dy, row_begin(a.dy_rows, r) + c);
      if (a.rstd != nullptr)
        v *= (load(a.x, row_begin(a.x_rows, r) + c) - (a.mean != nullptr ? a.mean[r] : 0.0f)) * a.rstd[r];
      sum += v;
    }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && c < a.cols) {
    for (int i = 1; i < kRowsOfBlock; ++i) sum += sums[i][threadIdx.x];
    a.partial[granule * a.cols + c] = sum;
  }
}
// acc, where given, then the granules in order.
extern "C" __global__ void add_partials(AddPartials args) {
  begin_grid();
  const i64 c = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (c >= args.cols) return;
  float sum = args.partial[c];
  if (given(args.acc)) sum = load(args.acc, c) + sum;
  for (i64 g = 1; g < args.granules; ++g) sum += args.partial[g * args.cols + c];
  store(args.out, c, sum);
}

}  // namespace plimsoll::cuda
