// The elementwise part of Muon: momentum, norm, the polynomial's sums, the step. Blocks of kMuonBlock
// elements.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/kernels/optimizer/muon_args.h"
#include "backends/cuda/kernels/optimizer/tensor_update.cuh"

namespace plimsoll::cuda {
namespace {

// Columns of the table, behind AdamW's.
enum { kRate = 8, kDecay, kMomentum, kOneMinusMomentum, kNesterov, kMatchesRms };

__device__ __forceinline__ i64 first_of_8() { return blockIdx.x * (i64)kMuonBlock + 8 * (i64)threadIdx.x; }

}  // namespace

// The momentum takes the gradient in; x is the update.
extern "C" __global__ void muon_gradient(const __grid_constant__ Muon a) {
  begin_grid();
  __shared__ double shared[kMuonThreads / 32];
  if (is_skipped(a.t)) return;
  const i64 i = first_of_8();
  const int n = some_of(i, a.t.n);
  const float share = a.t.group[kMomentum], rest = a.t.group[kOneMinusMomentum];
  const bool ahead = a.t.group[kNesterov] != 0.0f;
  double squares = 0;
  if (n > 0) {
    float g[8], m[8], x[8], sum = 0;
    load_gradient(a.t, i, n, g, true);
    load_some(a.momentum, i, n, m, true);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      m[e] = fmaf(__fsub_rn(g[e], m[e]), rest, m[e]);
      x[e] = ahead ? fmaf(__fsub_rn(m[e], g[e]), share, g[e]) : m[e];
      sum = fmaf(x[e], x[e], sum);
    }
    squares = (double)sum;
    const Operand update = {a.x, kF32, 0};
    store_some(update, i, n, x, true);
    store_drawn(a.t, a.momentum, i, n, m, 1, true);
  }
  squares = block_sum(squares, shared);
  if (threadIdx.x == 0) a.squares[blockIdx.x] = squares;
}

// One block.
extern "C" __global__ void muon_norm(const __grid_constant__ Muon a) {
  begin_grid();
  __shared__ double shared[kMuonThreads / 32];
  if (is_skipped(a.t)) return;
  double sum = 0;
  for (i64 i = threadIdx.x; i < a.blocks; i += kMuonThreads) sum += a.squares[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) a.scale[0] = (float)(1.0 / fmax(sqrt(sum), a.epsilon));
}

extern "C" __global__ void muon_scale(const __grid_constant__ Muon a) {
  begin_grid();
  const i64 i = first_of_8();
  const int n = some_of(i, a.t.n);
  if (n == 0 || is_skipped(a.t)) return;
  const Operand update = {a.x, kF32, 0};
  const float scale = a.scale[0];
  float x[8];
  load_some(update, i, n, x, true);
#pragma unroll
  for (int e = 0; e < 8; ++e) x[e] *= scale;
  store_some(update, i, n, x, true);
}

extern "C" __global__ void muon_combine(const __grid_constant__ Combination c) {
  begin_grid();
  const i64 i = first_of_8();
  const int n = some_of(i, c.n);
  if (n == 0) return;
  const Operand from = {const_cast<float*>(c.x), kF32, 0}, to = {c.to, kF32, 0};
  float x[8], y[8];
  load_some(from, i, n, x, true);
  load_some(to, i, n, y, true);
#pragma unroll
  for (int e = 0; e < 8; ++e) y[e] = fmaf(c.a, x[e], __fmul_rn(c.b, y[e]));
  store_some(to, i, n, y, true);
}

extern "C" __global__ void muon_step(const __grid_constant__ Muon a) {
  begin_grid();
  const i64 i = first_of_8();
  const int n = some_of(i, a.t.n);
  if (n == 0) return;
  if (is_skipped(a.t)) return copy_param(a.t, i, n, true);
  const double adjustment = a.adjustments[a.t.group[kMatchesRms] != 0.0f ? 1 : 0];
  const float rate = (float)((double)a.t.group[kRate] * adjustment);
  const Operand update = {a.x, kF32, 0};
  float step[8];
  load_some(update, i, n, step, true);
#pragma unroll
  for (int e = 0; e < 8; ++e) step[e] = __fmul_rn(rate, step[e]);
  step_param(a.t, i, n, a.t.group[kDecay], step, true);
}

}  // namespace plimsoll::cuda
