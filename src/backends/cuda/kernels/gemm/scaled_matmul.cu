// Makes bf16 numbers of codes in FP8 and FP4, and the factor of a product from the scales of its tensors.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/minifloat.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/gemm/scaled_matmul_args.h"

namespace plimsoll::cuda {
namespace {

__device__ __forceinline__ float scale_at(const CodedMatrix& m, i64 row, i64 col) {
  if (m.scheme.scales == BlockScales::kNone) return 1.0f;
  const i64 of_row = (m.cols + m.scheme.block_cols - 1) / m.scheme.block_cols;
  const i64 at = row / m.scheme.block_rows * of_row + col / m.scheme.block_cols;
  if (m.scheme.scales == BlockScales::kPowerOfTwo) return ((const float*)m.scales)[at];
  const u32 code = ((const unsigned char*)m.scales)[at];
  if (m.scheme.scales == BlockScales::kE4m3) return value_of_code<MiniE4m3>(code);
  return __uint_as_float(code == 0 ? 0x00400000u : code << 23);
}

// Eight codes of a row from `col` on, a multiple of 8, a byte or half a byte each; the row has n of them.
__device__ __forceinline__ u64 load_codes(const CodedMatrix& m, i64 row, i64 col, int n) {
  const bool halves = m.scheme.format == CodeFormat::kE2m1;
  const unsigned char* at = m.codes + row * (halves ? (m.cols + 1) / 2 : m.cols) + (halves ? col / 2 : col);
  const int bytes = halves ? (n + 1) / 2 : n;
  if (bytes == 8 && ((u64)at & 7) == 0) return *(const u64*)at;
  u64 all = 0;
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (e < bytes) all |= (u64)at[e] << 8 * e;
  return all;
}
__device__ __forceinline__ float value_of(CodeFormat format, u32 code) {
  return format == CodeFormat::kE4m3   ? value_of_code<MiniE4m3>(code)
         : format == CodeFormat::kE5m2 ? value_of_code<MiniE5m2>(code)
                                       : value_of_code<MiniE2m1>(code);
}

}  // namespace

// Eight elements a thread, along a row: one block's.
extern "C" __global__ void dequantize_codes(const __grid_constant__ DequantizeCodes a) {
  begin_grid();
  const i64 parts = (a.cols + 7) / 8;
  const Place at = place_of(blockIdx.x * (i64)blockDim.x + threadIdx.x, parts);
  if (at.row >= a.rows) return;
  const i64 row = a.row + at.row, part = 8 * at.col, col = a.column + part;
  const int n = a.cols - part < 8 ? (int)(a.cols - part) : 8;
  const u64 codes = load_codes(a.matrix, row, col, n);
  const float scale = scale_at(a.matrix, row, col);
  const int bits = a.matrix.scheme.format == CodeFormat::kE2m1 ? 4 : 8;
  float v[8];
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const u32 code = (u32)(codes >> bits * e) & ((1u << bits) - 1);
    v[e] = rounded_to(__fmul_rn(value_of(a.matrix.scheme.format, code), scale), kBf16);
  }
  store_part(a.out, at.row * a.cols + part, n, v, a.cols % 8 == 0 && aligned16(a.out));
}

extern "C" __global__ void product_factor(const __grid_constant__ ProductFactor a) {
  begin_grid();
  if (threadIdx.x != 0) return;
  a.out[0] = __fmul_rn(__fmul_rn(a.a[0], a.b[0]), a.inverse);
  a.out[1] = a.adds ? 1.0f : 0.0f;
}

}  // namespace plimsoll::cuda
