// Losses against float labels: a warp a row.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/loss/label_loss_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void label_loss_rows(LabelLossRows args) {
  begin_grid();
  const i64 row = blockIdx.x * 8ll + (threadIdx.x >> 5);
  if (row >= args.rows) return;
  const float first = args.labels[row * args.cols];
  float sum = 0;
  if (first == first)
    for (i64 c = threadIdx.x & 31; c < args.cols; c += 32) {
      const float v = load(args.x, row * args.cols + c), y = args.labels[row * args.cols + c];
      sum += args.squared ? (v - y) * (v - y) : fmaxf(v, 0.0f) - v * y + log1pf(expf(-fabsf(v)));
      if (v != v) sum = v;
    }
  sum = warp_sum(sum);
  if ((threadIdx.x & 31) == 0) args.losses[row] = sum / (float)args.cols;
}
extern "C" __global__ void label_loss_grad(LabelLossGrad args) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= args.n) return;
  const float v = load(args.x, i), y = args.labels[i], first = args.labels[i - place_of(i, args.cols).col],
              each = args.scale[0] / (float)args.cols;
  const float slope = args.squared ? 2.0f * (v - y) : 1.0f / (1.0f + expf(-v)) - y;
  store(args.out, i, first == first ? slope * each : 0.0f);
}

}  // namespace plimsoll::cuda
