// Quantises what a norm computes while its row is in registers.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/kernels/gemm/norm_codes_args.h"
#include "backends/cuda/kernels/gemm/operand_codes.cuh"
#include "backends/cuda/kernels/norm/norm.cuh"

namespace plimsoll::cuda {

extern "C" __global__ void __launch_bounds__(512, 1) norm_codes(const __grid_constant__ NormCodes a) {
  begin_grid();
  __shared__ u32 shared[kMostRowThreads / 32];
  const DeviceTensorScale tensor = tensor_of(a.plain);
  u32 most = 0;
  normalise_row(a.norm, are_eights(a.norm), [&](i64 row, i64 col, int n, float(&v)[8]) {
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = as_read(v[e], a.dtype, a.plain.source);
    quantize_run(a.plain, tensor, row, col, n, v);
    const u32 bits = largest_bits(v);
    if (bits > most) most = bits;
  });
  if (a.largest == nullptr) return;
  most = largest_of_block(most, shared);
  if (threadIdx.x == 0) a.largest[blockIdx.x] = most;
}

}  // namespace plimsoll::cuda
