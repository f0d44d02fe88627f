// Cross-entropy of rows of logits: a block a row; losses are added in granules' order.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/loss/loss_args.h"

namespace plimsoll::cuda {

// d may lie where the logits do, its rows beginning where theirs do: what a stretch of a row overwrites has
// been read.
extern "C" __global__ void loss_rows(LossRows a) {
  begin_grid();
  __shared__ float shared[32];
  const i64 row = blockIdx.x, from = row * a.stride;
  const int target = a.targets[row];
  const bool counts = target != -100;
  const bool vec = a.stride % 8 == 0 && aligned16(a.logits) && a.d_stride % 8 == 0 && aligned16(a.d);
  float lse;
  if (a.given_lse != nullptr) {
    lse = a.given_lse[row];
  } else {
    float most = __int_as_float(0xff800000), total = 0;
    for (i64 c = 8 * (i64)threadIdx.x; c < a.cols; c += 8 * blockDim.x) {
      float v[8];
      const int n = a.cols - c < 8 ? (int)(a.cols - c) : 8;
      load_part(a.logits, from + c, n, v, vec);
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (e >= n) v[e] = __int_as_float(0xff800000);
      float higher = most;
      for (int e = 0; e < 8; ++e) higher = v[e] > higher || v[e] != v[e] ? v[e] : higher;
      if (higher == __int_as_float(0xff800000)) continue;
      if (higher != most) total *= expf(most - higher);
      most = higher;
      for (int e = 0; e < 8; ++e) total += expf(v[e] - most);
    }
    const float all = block_max(most, shared);
    const float mine = most == __int_as_float(0xff800000) ? 0.0f : total * expf(most - all);
    lse = all + logf(block_sum(mine, shared));
  }
  if (threadIdx.x == 0) {
    if (a.lse != nullptr) a.lse[row] = lse;
    if (a.loss != nullptr) a.loss[row] = counts ? lse - load(a.logits, from + target) : 0.0f;
  }
  if (!given(a.d)) return;
  __syncthreads();
  const float scale = a.scale[0];
  const i64 to = row * a.d_stride;
  for (i64 begin = 0; begin < a.cols; begin += 8 * blockDim.x) {
    const i64 c = begin + 8 * (i64)threadIdx.x;
    const int n = c >= a.cols ? 0 : a.cols - c < 8 ? (int)(a.cols - c) : 8;
    float v[8];
    load_part(a.logits, from + c, n, v, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      v[e] = counts ? (expf(v[e] - lse) - (c + e == target ? 1.0f : 0.0f)) * scale : 0.0f;
      if (a.tf32) v[e] = rounded_to_tf32(v[e]);
    }
    __syncthreads();
    store_part(a.d, to + c, n, v, vec);
  }
}

// One block: acc, where given, and the granules' sums in order.
extern "C" __global__ void sum_losses(SumLosses args) {
  begin_grid();
  __shared__ float shared[32];
  float sum = 0;
  for (i64 g = 0; g < args.count; ++g) {
    const i64 row = granule_begin(args.granules, g) + threadIdx.x;
    const float part = block_sum(row < granule_end(args.granules, g) ? args.losses[row] : 0.0f, shared);
    sum = g == 0 ? (args.acc != nullptr ? args.acc[0] + part : part) : sum + part;
  }
  if (threadIdx.x == 0) args.out[0] = sum;
}

// ---- loss scaling: a few scalars
extern "C" __global__ void unscale(Unscale args) {
  begin_grid();
  const float scaled = args.norm[0], inverse = (float)(1.0 / (double)args.scaler[0]);
  const float unscaled = __fmul_rn(scaled, inverse);
  const float clip = args.max_norm / (unscaled + 1e-6f);
  args.out[0] = unscaled;
  const bool finite = fabsf(scaled) < __int_as_float(0x7f800000);
  args.factor[0] = finite ? (clip < 1.0f ? clip : 1.0f) * inverse : __int_as_float(0x7fc00000);
}
extern "C" __global__ void next_scale(NextScale args) {
  begin_grid();
  const bool finite = fabsf(args.norm[0]) < __int_as_float(0x7f800000);
  float scale = args.scaler[0], clean = args.scaler[1];
  if (!finite) {
    scale = (float)((double)scale * args.backoff);
    clean = 0;
  } else {
    clean += 1;
    if ((i64)clean >= args.interval) {
      const float grown = (float)((double)scale * args.growth);
      if (fabsf(grown) < __int_as_float(0x7f800000)) scale = grown;
      clean = 0;
    }
  }
  args.out[0] = scale, args.out[1] = clean, args.out[2] = finite ? 0.0f : 1.0f;
}

}  // namespace plimsoll::cuda
