// AdamW with moments in FP8: the lanes that share a scale hold its block in registers. The arithmetic is the
// definition's (ops/moment_codes.h), rounding by rounding, but for the powers and logarithms of coat, which
// are the card's own.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/minifloat.cuh"
#include "backends/cuda/kernels/optimizer/adamw_fp8_args.h"
#include "backends/cuda/kernels/optimizer/coded_moments.cuh"

namespace plimsoll::cuda {
namespace {

constexpr float kLargestE4m3 = 448.0f, kLargestFp16 = 32768.0f;
constexpr float kE4m3Range = kLargestE4m3 * 512.0f;  // by the least number, 2^-9
constexpr float kLeastRange = 2.0f;                  // a block of one magnitude has no range to stretch

// Over lanes side by side; all get it.
template <int kLanes>
__device__ __forceinline__ float lanes_max(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset >>= 1)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

template <int kLanes>
__device__ __forceinline__ float largest_of(const float (&x)[8]) {
  float most = 0.0f;
#pragma unroll
  for (int e = 0; e < 8; ++e) most = fmaxf(most, fabsf(x[e]));
  return lanes_max<kLanes>(most);
}

// The power that stretches a block's range to that of E4M3; 1 of a block of zeros.
template <int kLanes>
__device__ __forceinline__ float power_of(const float (&x)[8], float absmax) {
  float least = absmax;
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (x[e] != 0.0f) least = fminf(least, fabsf(x[e]));
  least = -lanes_max<kLanes>(-least);
  if (!(absmax > 0.0f)) return 1.0f;
  const float range = fminf(fmaxf(__fdiv_rn(absmax, least), kLeastRange), kLargestF32);
  return __fdiv_rn(logf(kE4m3Range), logf(range));
}

__device__ __forceinline__ void from_shares(float absmax, float largest, float (&x)[8]) {
  const float unit = __fdiv_rn(absmax, largest);
#pragma unroll
  for (int e = 0; e < 8; ++e) x[e] = absmax == 0.0f ? 0.0f : __fmul_rn(x[e], unit);
}

__device__ __forceinline__ void read_e4m3(const unsigned char* codes, i64 i, int n, float (&x)[8]) {
  int of[8];
  load_codes(codes, i, n, of);
#pragma unroll
  for (int e = 0; e < 8; ++e) x[e] = value_of_code<MiniE4m3>((u32)of[e]);
}

__device__ __forceinline__ void write_e4m3(unsigned char* codes, i64 i, int n, const float (&x)[8]) {
  int of[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) of[e] = (int)scaled_code<MiniE4m3>(x[e], 1.0f);
  store_codes(codes, i, n, of);
}

__device__ __forceinline__ void expand(float absmax, float power, float (&x)[8]) {
  const float root = __fdiv_rn(1.0f, power);
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const float share = powf(__fdiv_rn(fabsf(x[e]), kLargestE4m3), root);
    x[e] = absmax == 0.0f ? 0.0f : copysignf(__fmul_rn(absmax, share), x[e]);
  }
}

// What a block's values are divided by before they become codes.
__device__ __forceinline__ float divisor_of(float absmax) { return absmax > 0.0f ? absmax : 1.0f; }

__device__ __forceinline__ void to_shares(float absmax, float largest, float (&x)[8]) {
#pragma unroll
  for (int e = 0; e < 8; ++e) x[e] = __fmul_rn(largest, __fdiv_rn(x[e], divisor_of(absmax)));
}

__device__ __forceinline__ void compress(float absmax, float power, float (&x)[8]) {
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const float share = __fdiv_rn(x[e], divisor_of(absmax));
    x[e] = __fmul_rn(kLargestE4m3, copysignf(powf(fabsf(share), power), share));
  }
}

__device__ __forceinline__ i64 first_of_warp() {
  return (blockIdx.x * (i64)kFp8Warps + (threadIdx.x >> 5)) * kFp8Elements;
}

}  // namespace

extern "C" __global__ void adamw_fp8_lm(const __grid_constant__ AdamwFp8 a) {
  begin_grid();
  const int lane = threadIdx.x & 31;
  const i64 first = first_of_warp(), i = first + 8 * lane, block = first / (8 * kFp8LmLanes);
  if (first >= a.t.n) return;
  const int n = some_of(i, a.t.n);
  if (is_skipped(a.t)) return copy_param(a.t, i, n, true);
  const Operand squares = {a.v_codes, kF16, 0};
  float m[8], v[8], g[8], step[8];
  read_e4m3(a.m_codes, i, n, m);
  load_some(squares, i, n, v, true);
  from_shares(a.m_absmax[block], kLargestE4m3, m), from_shares(a.v_absmax[block], kLargestFp16, v);
  load_gradient(a.t, i, n, g, true);
  moments_of(a.t.group, n, g, m, v, step);
  const float most_m = largest_of<kFp8LmLanes>(m), most_v = largest_of<kFp8LmLanes>(v);
  if (lane == 0) a.m_absmax[block] = most_m, a.v_absmax[block] = most_v;
  to_shares(most_m, kLargestE4m3, m), to_shares(most_v, kLargestFp16, v);
  write_e4m3(a.m_codes, i, n, m);
  store_some(squares, i, n, v, true);
  step_param(a.t, i, n, a.t.group[kDecay], step, true);
}

extern "C" __global__ void adamw_coat(const __grid_constant__ AdamwFp8 a) {
  begin_grid();
  const int lane = threadIdx.x & 31;
  const i64 first = first_of_warp(), i = first + 8 * lane, block = i / (8 * kCoatLanes);
  if (first >= a.t.n) return;
  const int n = some_of(i, a.t.n);
  if (is_skipped(a.t)) return copy_param(a.t, i, n, true);
  auto* const v_codes = static_cast<unsigned char*>(a.v_codes);
  const bool has_block = block * (8 * kCoatLanes) < a.t.n;  // a warp's second may lie behind the tensor
  float m[8], v[8], g[8], step[8];
  read_e4m3(a.m_codes, i, n, m), read_e4m3(v_codes, i, n, v);
  expand(has_block ? a.m_absmax[block] : 0.0f, has_block ? a.m_power[block] : 1.0f, m);
  expand(has_block ? a.v_absmax[block] : 0.0f, has_block ? a.v_power[block] : 1.0f, v);
  load_gradient(a.t, i, n, g, true);
  moments_of(a.t.group, n, g, m, v, step);
  const float most_m = largest_of<kCoatLanes>(m), most_v = largest_of<kCoatLanes>(v);
  const float power_m = power_of<kCoatLanes>(m, most_m), power_v = power_of<kCoatLanes>(v, most_v);
  if (has_block && lane % kCoatLanes == 0) {
    a.m_absmax[block] = most_m, a.v_absmax[block] = most_v;
    a.m_power[block] = power_m, a.v_power[block] = power_v;
  }
  compress(most_m, power_m, m), compress(most_v, power_v, v);
  write_e4m3(a.m_codes, i, n, m), write_e4m3(v_codes, i, n, v);
  step_param(a.t, i, n, a.t.group[kDecay], step, true);
}

}  // namespace plimsoll::cuda
