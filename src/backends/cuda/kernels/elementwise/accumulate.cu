// Gradients added to accumulators of bf16: eight elements a thread.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/accumulate_args.h"
#include "backends/cuda/kernels/optimizer/draws.cuh"

namespace plimsoll::cuda {

extern "C" __global__ void accumulate(const __grid_constant__ Accumulate a) {
  begin_grid();
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= a.n) return;
  const int n = a.n - i < 8 ? (int)(a.n - i) : 8;
  const bool vec = aligned16(a.g) && aligned16(a.acc) && aligned16(a.out);
  float v[8], held[8] = {};
  load_part(a.g, i, n, v, vec);
  if (given(a.acc)) load_part(a.acc, i, n, held, vec);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint4 words =
        philox4((u32)((i >> 2) + half), a.random[3], a.random[2], a.key, a.random[0], a.random[1]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int e = 4 * half + k;
      v[e] = drawn(given(a.acc) ? __fadd_rn(held[e], v[e]) : v[e], word_of(words, k), 0);
    }
  }
  store_part(a.out, i, n, v, vec);
}

}  // namespace plimsoll::cuda
