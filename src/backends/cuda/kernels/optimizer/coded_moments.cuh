// Shared code of AdamW with moments in codes: eight codes of a byte at a time, and the step of eight
// elements.
#pragma once

#include "backends/cuda/kernels/optimizer/tensor_update.cuh"

namespace plimsoll::cuda {

__device__ __forceinline__ void load_codes(const unsigned char* codes, i64 i, int n, int* out) {
  if (n == 8 && ((u64)(codes + i) & 7) == 0) {
    const u64 all = *(const u64*)(codes + i);
#pragma unroll
    for (int e = 0; e < 8; ++e) out[e] = (int)(all >> 8 * e & 255u);
    return;
  }
#pragma unroll
  for (int e = 0; e < 8; ++e) out[e] = e < n ? codes[i + e] : 0;
}
__device__ __forceinline__ void store_codes(unsigned char* codes, i64 i, int n, const int* in) {
  if (n == 8 && ((u64)(codes + i) & 7) == 0) {
    u64 all = 0;
#pragma unroll
    for (int e = 0; e < 8; ++e) all |= (u64)in[e] << 8 * e;
    *(u64*)(codes + i) = all;
    return;
  }
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (e < n) codes[i + e] = (unsigned char)in[e];
}

enum { kDecay, kBeta1, kOneMinusBeta1, kBeta2, kOneMinusBeta2, kEpsilon, kStepSize, kSqrtCorrection2 };

// The moments of eight elements and their steps; nothing of what lies behind n.
__device__ __forceinline__ void moments_of(const float* group, int n, const float* g, float* m, float* v,
                                           float* step) {
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    m[e] = e < n ? __fadd_rn(__fmul_rn(m[e], group[kBeta1]), __fmul_rn(g[e], group[kOneMinusBeta1])) : 0.0f;
    v[e] = e < n ? __fadd_rn(__fmul_rn(v[e], group[kBeta2]),
                             __fmul_rn(__fmul_rn(g[e], group[kOneMinusBeta2]), g[e]))
                 : 0.0f;
    const float denominator =
        __fadd_rn(__fdiv_rn(__fsqrt_rn(v[e]), group[kSqrtCorrection2]), group[kEpsilon]);
    step[e] = e < n ? __fmul_rn(group[kStepSize], __fdiv_rn(m[e], denominator)) : 0.0f;
  }
}

}  // namespace plimsoll::cuda
