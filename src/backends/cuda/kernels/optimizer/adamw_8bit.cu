// AdamW with moments of 8 bits: a warp takes the elements that share a scale. Its arithmetic is the
// definition's (ops/rule_adamw_8bit.cpp), rounding by rounding: what lies between two codes must lie on the
// same side here and there.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/kernels/optimizer/adamw_8bit_args.h"
#include "backends/cuda/kernels/optimizer/coded_moments.cuh"

namespace plimsoll::cuda {
namespace {

// A map's magnitudes, and the bounds between them: behind the last, infinities.
struct Magnitudes {
  float values[256], bounds[256];
};
__device__ __forceinline__ void fill_magnitudes(Magnitudes& map, const float* values, int count) {
  for (int k = threadIdx.x; k < 256; k += blockDim.x) {
    map.values[k] = k < count ? values[k] : 0.0f;
    map.bounds[k] =
        k + 1 < count ? __fdiv_rn(__fadd_rn(values[k], values[k + 1]), 2.0f) : __int_as_float(0x7f800000);
  }
}

// How many bounds x is above.
__device__ __forceinline__ int magnitude_of(const Magnitudes& map, float x) {
  int k = 0;
#pragma unroll
  for (int step = 128; step > 0; step >>= 1)
    if (x > map.bounds[k + step - 1]) k += step;
  return k;
}
__device__ __forceinline__ float signed_value(const Magnitudes& map, int code) {
  return code >= 127 ? map.values[code - 127] : -map.values[127 - code];
}
__device__ __forceinline__ int signed_code(const Magnitudes& map, float x) {
  const int k = magnitude_of(map, fabsf(x));
  return x < 0.0f ? 127 - (k < 127 ? k : 127) : 127 + k;
}

// What a block's values are multiplied with before their codes are looked up.
__device__ __forceinline__ float code_scale(float absmax) {
  return absmax > 0.0f ? __fdiv_rn(1.0f, absmax) : 0.0f;
}

}  // namespace

extern "C" __global__ void adamw_8bit(const __grid_constant__ Adamw8bit a) {
  begin_grid();
  __shared__ Magnitudes signed_map, unsigned_map;
  fill_magnitudes(signed_map, a.signed_values, 129);
  fill_magnitudes(unsigned_map, a.unsigned_values, 256);
  __syncthreads();
  const int lane = threadIdx.x & 31;
  const i64 block = blockIdx.x * (i64)kCodeWarps + (threadIdx.x >> 5);
  if (block * kCodesOfWarp >= a.t.n) return;
  const i64 i = block * kCodesOfWarp + 8 * lane;
  const int n = some_of(i, a.t.n);
  if (is_skipped(a.t)) return copy_param(a.t, i, n, true);
  const float m_absmax = a.m_absmax[block], v_absmax = a.v_absmax[block];
  int m_codes[8], v_codes[8];
  load_codes(a.m_codes, i, n, m_codes), load_codes(a.v_codes, i, n, v_codes);
  float g[8], m[8], v[8], step[8], largest_m = 0, largest_v = 0;
  load_gradient(a.t, i, n, g, true);
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    m[e] = __fmul_rn(signed_value(signed_map, m_codes[e]), m_absmax);
    v[e] = __fmul_rn(unsigned_map.values[v_codes[e]], v_absmax);
  }
  moments_of(a.t.group, n, g, m, v, step);
#pragma unroll
  for (int e = 0; e < 8; ++e) largest_m = fmaxf(largest_m, fabsf(m[e])), largest_v = fmaxf(largest_v, v[e]);
  largest_m = warp_max(largest_m), largest_v = warp_max(largest_v);
  const float m_scale = code_scale(largest_m), v_scale = code_scale(largest_v);
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    m_codes[e] = signed_code(signed_map, __fmul_rn(m[e], m_scale));
    v_codes[e] = magnitude_of(unsigned_map, __fmul_rn(v[e], v_scale));
  }
  store_codes(a.m_codes, i, n, m_codes), store_codes(a.v_codes, i, n, v_codes);
  if (lane == 0) a.m_absmax[block] = largest_m, a.v_absmax[block] = largest_v;
  step_param(a.t, i, n, a.t.group[kDecay], step, true);
}

}  // namespace plimsoll::cuda
