// Walks over the numbers of an operand that is quantised: a warp has 256 elements of a row of the quantised
// matrix, eight in each lane.
#pragma once

#include "backends/cuda/device/minifloat.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/gemm/quantize_operand_args.h"
#include "backends/cuda/kernels/norm/row_strides.cuh"

namespace plimsoll::cuda {

// x as bf16 holds it; unlike to_bf16 it leaves the sign of a NaN.
__device__ __forceinline__ float as_bf16(float x) {
  const u32 bits = __float_as_uint(x);
  return is_nan(x) ? x : __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

// What is read of a number that is computed, where it lies nowhere: as it would be stored in `dtype`.
__device__ __forceinline__ float as_read(float y, int dtype, const OperandSource& s) {
  const float stored = rounded_to(y, dtype);
  return s.rounded ? as_bf16(stored) : stored;
}

// The first n of eight elements from `col` on of row `row` of x; zeros behind them.
__device__ __forceinline__ void load_of_x(const OperandSource& s, i64 row, i64 col, int n, float (&v)[8]) {
  load_part(s.x, row_begin(s.strides, row) + col, n, v, aligned16(s.x) && by_eights(s.strides));
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (s.rounded) v[e] = as_bf16(v[e]);
}
// The same of the quantised matrix.
__device__ __forceinline__ void load_quantized(const OperandSource& s, i64 row, i64 col, int n,
                                               float (&v)[8]) {
  if (!s.transposed) return load_of_x(s, row, col, n, v);
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    v[e] = e < n ? load(s.x, row_begin(s.strides, col + e) + row) : 0.0f;
    if (s.rounded) v[e] = as_bf16(v[e]);
  }
}
// The row of x that lies in a column of its transpose; -1: zeros.
__device__ __forceinline__ i64 turned_row(const OperandSource& s, i64 column) {
  if (s.tokens == s.columns) return column;
  const Place at = place_of(column, s.columns);
  return at.col < s.tokens ? at.row * s.tokens + at.col : -1;
}
__device__ __forceinline__ int part_of(i64 begin, i64 end) {
  const i64 rest = end - begin;
  return rest <= 0 ? 0 : rest < 8 ? (int)rest : 8;
}

// numerics::random_hadamard of runs of 16, two lanes each. All lanes of the warp call it.
__device__ __forceinline__ void random_hadamard(float (&v)[8]) {
  const int second = threadIdx.x & 1;
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (0xD7E8u >> (8 * second + e) & 1u) v[e] = -v[e];
#pragma unroll
  for (int half = 1; half < 8; half *= 2)
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if ((e & half) == 0) {
        const float a = v[e], b = v[e + half];
        v[e] = __fadd_rn(a, b);
        v[e + half] = __fsub_rn(a, b);
      }
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const float other = __shfl_xor_sync(0xffffffffu, v[e], 1);
    v[e] = second ? __fsub_rn(other, v[e]) : __fadd_rn(v[e], other);
    v[e] = as_bf16(__fmul_rn(v[e], 0.25f));
  }
}

// Loads x itself; where something else is quantised, what computes it takes this place.
struct OfX {
  const OperandSource& s;
  __device__ __forceinline__ void operator()(i64 row, i64 col, int n, float (&v)[8]) const {
    load_of_x(s, row, col, n, v);
  }
};

// body(row, col, n, v) for all runs of a matrix that lies as x does: each lane gets n of its eight elements.
template <typename Load, typename Body>
__device__ __forceinline__ void visit_runs(const OperandSource& s, Load load, Body body) {
  const i64 runs = (s.cols + kRunElements - 1) / kRunElements;
  const i64 run = blockIdx.x * (i64)kRunWarps + (threadIdx.x >> 5);
  if (run >= s.rows * runs) return;
  const Place at = place_of(run, runs);
  const i64 col = at.col * kRunElements + 8 * (threadIdx.x & 31);
  const int n = part_of(col, s.cols);
  float v[8];
  load(at.row, n == 0 ? 0 : col, n, v);
  if (s.hadamard) random_hadamard(v);
  body(at.row, col, n, v);
}

// The same of x's transpose: a block brings a tile of x to shared memory, where a word is left free behind
// every eight, so that neither columns that are written nor rows that are read meet in a bank.
template <typename Load, typename Body>
__device__ __forceinline__ void visit_turned(const OperandSource& s, Load load, Body body) {
  constexpr int kPitch = kRunElements + kRunElements / 8 + 1;
  __shared__ float tile[kTurnedColumns * kPitch];
  const i64 wide = (s.rows + kTurnedColumns - 1) / kTurnedColumns;
  const Place at = place_of(blockIdx.x, wide);
  const i64 first_row = at.col * kTurnedColumns, first_col = at.row * kRunElements;
  const int piece = 8 * (threadIdx.x % (kTurnedColumns / 8));
  for (int t = threadIdx.x / (kTurnedColumns / 8); t < kRunElements;
       t += 32 * kRunWarps / (kTurnedColumns / 8)) {
    const i64 row = first_col + t < s.cols ? turned_row(s, first_col + t) : -1;
    const int n = row < 0 ? 0 : part_of(first_row + piece, s.rows);
    float v[8];
    load(n == 0 ? 0 : row, n == 0 ? 0 : first_row + piece, n, v);
#pragma unroll
    for (int e = 0; e < 8; ++e) tile[(piece + e) * kPitch + t + t / 8] = v[e];
  }
  __syncthreads();
  const int lane = threadIdx.x & 31;
  for (int r = threadIdx.x >> 5; r < kTurnedColumns && first_row + r < s.rows; r += kRunWarps) {
    float v[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = tile[r * kPitch + 9 * lane + e];
    if (s.hadamard) random_hadamard(v);
    const i64 col = first_col + 8 * lane;
    body(first_row + r, col, part_of(col, s.cols), v);
  }
}

// The bits of the largest magnitude of eight elements; NaN is passed over.
__device__ __forceinline__ u32 largest_bits(const float (&v)[8]) {
  u32 most = 0;
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const u32 bits = bits_of_magnitude(v[e]);
    if (bits <= kInfinityBits && bits > most) most = bits;
  }
  return most;
}
// Over `lanes` neighbouring lanes, a power of two.
__device__ __forceinline__ u32 largest_of_lanes(u32 bits, int lanes) {
  for (int offset = lanes / 2; offset > 0; offset >>= 1) {
    const u32 other = __shfl_xor_sync(0xffffffffu, bits, offset);
    if (other > bits) bits = other;
  }
  return bits;
}
// Over all threads of the block, for thread 0 at least.
__device__ __forceinline__ u32 largest_of_block(u32 bits, u32* shared) {
  bits = largest_of_lanes(bits, 32);
  __syncthreads();
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = bits;
  __syncthreads();
  u32 most = 0;
  for (int w = 0; w < (int)(blockDim.x >> 5); ++w)
    if (shared[w] > most) most = shared[w];
  return most;
}

}  // namespace plimsoll::cuda
