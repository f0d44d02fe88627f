// Cross-entropy of rows of logits against smoothed and mixed targets: a block a row.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/loss/soft_loss_args.h"

namespace plimsoll::cuda {

// What of a row's target is at class c beside `rest`.
__device__ __forceinline__ float hard_share(const SoftLossRows& a, i64 row, i64 c) {
  if (a.second == nullptr) return c == a.targets[row] ? (float)a.hard : 0.0f;
  const double share = (double)a.share[row];
  double sum = 0;
  if (c == a.targets[row]) sum += a.hard * share;
  if (c == a.second[row]) sum += a.hard * (1.0 - share);
  return (float)sum;
}

extern "C" __global__ void soft_loss_rows(SoftLossRows a) {
  begin_grid();
  __shared__ float shared[32];
  const i64 row = blockIdx.x, from = row * a.stride;
  const float lowest = __int_as_float(0xff800000);
  float most = lowest;
  for (i64 c = threadIdx.x; c < a.cols; c += blockDim.x) {
    const float v = load(a.logits, from + c);
    most = v > most || v != v ? v : most;
  }
  most = block_max(most, shared);
  float total = 0;
  for (i64 c = threadIdx.x; c < a.cols; c += blockDim.x) total += expf(load(a.logits, from + c) - most);
  const float lse = most + logf(block_sum(total, shared));
  float loss = 0;
  for (i64 c = threadIdx.x; c < a.cols; c += blockDim.x) {
    const float weight = hard_share(a, row, c) + (float)a.rest;
    if (weight != 0.0f) loss += weight * (lse - load(a.logits, from + c));
  }
  loss = block_sum(loss, shared);
  if (threadIdx.x != 0) return;
  a.lse[row] = lse;
  a.loss[row] = a.targets[row] != -100 ? loss : 0.0f;
}

// d may lie where the logits do: a thread writes what it alone has read.
extern "C" __global__ void soft_loss_grad(SoftLossRows a) {
  begin_grid();
  const i64 row = blockIdx.x;
  const bool counts = a.targets[row] != -100;
  const float lse = a.given_lse[row], scale = a.scale[0];
  for (i64 c = threadIdx.x; c < a.cols; c += blockDim.x) {
    const float p = expf(load(a.logits, row * a.stride + c) - lse);
    store(a.d, row * a.cols + c, counts ? (p - (hard_share(a, row, c) + (float)a.rest)) * scale : 0.0f);
  }
}

}  // namespace plimsoll::cuda
