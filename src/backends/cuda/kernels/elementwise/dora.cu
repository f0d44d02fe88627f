// Rows of an adapted weight by their norms, and what they produce scaled by magnitude / norm.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/dora_args.h"
#include "backends/cuda/kernels/gemm/coded_weight.cuh"

namespace plimsoll::cuda {
namespace {

__device__ __forceinline__ float weight_at(const DoraNorm& d, i64 i) {
  return d.codes.codes != nullptr ? coded_value(d.codes, i) : load(d.weight, i);
}

}  // namespace

// A block kDoraRows rows of a weight [out, in]: each element of a is read once for all of them.
extern "C" __global__ void dora_norm_rows(const __grid_constant__ DoraNorm d) {
  begin_grid();
  __shared__ float shared[32];
  const i64 first = blockIdx.x * (i64)kDoraRows;
  const int rows = d.outs - first < kDoraRows ? (int)(d.outs - first) : kDoraRows;
  float sums[kDoraRows] = {};
  for (i64 i = threadIdx.x; i < d.in; i += blockDim.x) {
    float v[kDoraRows];
#pragma unroll
    for (int o = 0; o < kDoraRows; ++o)
      v[o] = o < rows ? weight_at(d, (d.row + first + o) * d.width + i) : 0.0f;
    for (i64 k = 0; k < d.rank; ++k) {
      const float a = d.a[k * d.in + i];
#pragma unroll
      for (int o = 0; o < kDoraRows; ++o)
        if (o < rows) v[o] = fmaf(d.scale * d.b[(first + o) * d.rank + k], a, v[o]);
    }
#pragma unroll
    for (int o = 0; o < kDoraRows; ++o) sums[o] = fmaf(v[o], v[o], sums[o]);
  }
#pragma unroll
  for (int o = 0; o < kDoraRows; ++o) {
    const float sum = block_sum(sums[o], shared);
    if (threadIdx.x == 0 && o < rows) d.out[first + o] = sqrtf(sum);
  }
}

// Blocks of 32 x 8 threads, 32 columns of a weight [in, out].
extern "C" __global__ void dora_norm_columns(const __grid_constant__ DoraNorm d) {
  begin_grid();
  __shared__ float sums[8][33];
  const i64 o = blockIdx.x * 32ll + threadIdx.x;
  float sum = 0;
  if (o < d.outs)
    for (i64 i = threadIdx.y; i < d.in; i += 8) {
      float v = weight_at(d, i * d.width + d.row + o);
      for (i64 k = 0; k < d.rank; ++k) v = fmaf(d.a[k * d.in + i], d.scale * d.b[o * d.rank + k], v);
      sum = fmaf(v, v, sum);
    }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || o >= d.outs) return;
  for (int y = 1; y < 8; ++y) sum += sums[y][threadIdx.x];
  d.out[o] = sqrtf(sum);
}

// Eight elements a thread.
extern "C" __global__ void dora_scale(const __grid_constant__ DoraScale a) {
  begin_grid();
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= a.n) return;
  const int n = a.n - i < 8 ? (int)(a.n - i) : 8;
  i64 c = i % a.cols;
  float v[8];
  load_part(a.x, i, n, v, aligned16(a.x));
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    if (e >= n) continue;
    v[e] *= __fdiv_rn(a.magnitude[c], a.norm[c]);
    if (++c == a.cols) c = 0;
  }
  store_part(a.out, i, n, v, aligned16(a.out));
}
extern "C" __global__ void dora_scale_grad(const __grid_constant__ DoraScaleGrad a) {
  begin_grid();
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= a.n) return;
  const int n = a.n - i < 8 ? (int)(a.n - i) : 8;
  i64 c = i % a.cols;
  float v[8], x[8];
  load_part(a.dy, i, n, v, aligned16(a.dy)), load_part(a.x, i, n, x, aligned16(a.x));
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    if (e >= n) continue;
    v[e] = __fdiv_rn(__fmul_rn(v[e], x[e]), a.norm[c]);
    if (++c == a.cols) c = 0;
  }
  store_part(a.out, i, n, v, aligned16(a.out));
}

}  // namespace plimsoll::cuda
