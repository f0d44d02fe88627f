// Dequantizes a rectangle of a weight into the dtype that products read.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/gemm/coded_weight.cuh"
#include "backends/cuda/kernels/gemm/dequantize_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void dequantize_scales(const __grid_constant__ DequantizeScales a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  a.out[i] = __fadd_rn(__fmul_rn(a.map[a.codes[i]], a.second[i / kScaledScales]), a.offset[0]);
}

// Eight elements a thread, along a row.
extern "C" __global__ void dequantize(const __grid_constant__ Dequantize a) {
  begin_grid();
  __shared__ float values[16];
  if (threadIdx.x < 16) values[threadIdx.x] = a.weight.values[threadIdx.x];
  __syncthreads();
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= a.rows * a.cols) return;
  if (a.cols % 8 == 0 && a.column % 8 == 0 && a.weight.row % 8 == 0) {
    const i64 r = i / a.cols, c = i - r * a.cols;
    float v[8];
    coded_values8(a.weight, (a.row + r) * a.weight.row + a.column + c, values, v);
    if (a.tf32)
      for (int e = 0; e < 8; ++e) v[e] = rounded_to_tf32(v[e]);
    store8(a.out, i, v, aligned16(a.out));
    return;
  }
  for (i64 k = i; k < a.rows * a.cols && k < i + 8; ++k) {
    const float v = coded_value(a.weight, (a.row + k / a.cols) * a.weight.row + a.column + k % a.cols);
    store(a.out, k, a.tf32 ? rounded_to_tf32(v) : v);
  }
}

}  // namespace plimsoll::cuda
