// Products of tiles in shared memory, by warps: each takes rows of 16, and results stay in registers, eight
// columns in four floats of a lane (mma.cuh).
#pragma once

#include "backends/cuda/kernels/attention/mma_tiles.cuh"

namespace plimsoll::cuda {

// Where a lane reads the fragments of a tile. `rows`: an operand a of 16 rows and two chunks, or, transposed,
// b of 16 rows and two times 8 columns. `columns`: b of two chunks (the product's inner extent) of two times
// 8 rows. `long_columns`: of four chunks of 8 rows.
template <int kRow>
struct Reader {
  int row, flip;
  static __device__ __forceinline__ Reader rows() {
    const int lane = threadIdx.x & 31;
    return {(lane & 15) * kRow, (lane >> 4 ^ (lane & 7)) << 4};
  }
  static __device__ __forceinline__ Reader columns() {
    const int lane = threadIdx.x & 31;
    return {((lane & 7) + (lane >> 4) * 8) * kRow, ((lane >> 3 & 1) ^ (lane & 7)) << 4};
  }
  static __device__ __forceinline__ Reader long_columns() {
    const int lane = threadIdx.x & 31;
    return {(lane & 7) * kRow, (lane >> 3 ^ (lane & 7)) << 4};
  }
  // row0 a multiple of 16 (8), chunk of 2 (4).
  __device__ __forceinline__ SharedAt at(SharedAt tile, int row0, int chunk) const {
    return tile + (row + row0 * kRow + (chunk << 4 ^ flip));
  }
};

// s[m] += those rows of x times eight rows of y, whose fragments come four chunks at a time.
template <int kType, int kWidth, int kM>
__device__ __forceinline__ void multiply_eight_rows(SharedAt x, int x0, SharedAt y, float (&s)[kM][1][4]) {
  constexpr int kRow = MmaSizes<kWidth, kType>::kRow;
  const Reader<kRow> of_x = Reader<kRow>::rows(), of_y = Reader<kRow>::long_columns();
#pragma unroll
  for (int chunk = 0; chunk < kRow / 16; chunk += 4) {
    u32 b[4];
    load_matrices(b, of_y.at(y, 0, chunk));
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        u32 a[4];
        load_matrices(a, of_x.at(x, x0 + 16 * m, chunk + 2 * half));
        mma<kType>(s[m][0], a, b[2 * half], b[2 * half + 1]);
      }
  }
}

// s[m][n] = rows [x0 + 16m ..] of x times rows [8n ..] of y, over all columns.
template <int kType, int kWidth, int kM, int kN>
__device__ __forceinline__ void multiply_rows(SharedAt x, int x0, SharedAt y, float (&s)[kM][kN][4]) {
  constexpr int kRow = MmaSizes<kWidth, kType>::kRow;
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) s[m][n][e] = 0;
  if constexpr (kN == 1) {
    multiply_eight_rows<kType, kWidth>(x, x0, y, s);
  } else {
    const Reader<kRow> of_x = Reader<kRow>::rows(), of_y = Reader<kRow>::columns();
#pragma unroll
    for (int chunk = 0; chunk < kRow / 16; chunk += 2) {
      u32 a[kM][4];
#pragma unroll
      for (int m = 0; m < kM; ++m) load_matrices(a[m], of_x.at(x, x0 + 16 * m, chunk));
#pragma unroll
      for (int n = 0; n < kN; n += 2) {
        u32 b[4];
        load_matrices(b, of_y.at(y, 8 * n, chunk));
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          mma<kType>(s[m][n], a[m], b[0], b[1]);
          mma<kType>(s[m][n + 1], a[m], b[2], b[3]);
        }
      }
    }
  }
}

// Eight columns' weights as an operand in TF32; the rows that they multiply come as 2t, 2t+1 for t, t+4.
__device__ __forceinline__ void tf32_weights(const float (&p)[4], u32 (&a)[4]) {
  a[0] = tf32_word(p[0]), a[1] = tf32_word(p[2]), a[2] = tf32_word(p[1]), a[3] = tf32_word(p[3]);
}

// add_weighted in TF32. A lane reads four elements of each of its two rows, 4g .. 4g+3 of 32 columns, for
// four products: result n's column g is column 4g + n % 4 of those.
template <int kWidth, int kM, int kRows, int kN>
__device__ __forceinline__ void add_weighted_tf32(const float (&p)[kM][kRows][4], SharedAt y, int column0,
                                                  float (&o)[kM][kN][4]) {
  constexpr int kRow = MmaSizes<kWidth, kF32>::kRow;
  const int lane = threadIdx.x & 31, row = 2 * (lane % 4);
  const SharedAt even = y + (tile_offset<kRow>(row, lane / 4) + 32 * column0),
                 odd = y + (tile_offset<kRow>(row + 1, lane / 4) + 32 * column0);
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    u32 a[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) tf32_weights(p[m][k], a[m]);
#pragma unroll
    for (int n = 0; n < kN; n += 4) {
      const uint4 b0 = shared_load16(even + (8 * k * kRow + 32 * n)),
                  b1 = shared_load16(odd + (8 * k * kRow + 32 * n));
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        mma<kF32>(o[m][n], a[m], b0.x, b1.x);
        mma<kF32>(o[m][n + 1], a[m], b0.y, b1.y);
        mma<kF32>(o[m][n + 2], a[m], b0.z, b1.z);
        mma<kF32>(o[m][n + 3], a[m], b0.w, b1.w);
      }
    }
  }
}

// o[m] += p[m], rounded, times the columns from 8 column0 on of y's rows, of which there are 8 kRows; o[m][n]
// has those that column_of says.
template <int kType, int kWidth, int kM, int kRows, int kN>
__device__ __forceinline__ void add_weighted(const float (&p)[kM][kRows][4], SharedAt y, int column0,
                                             float (&o)[kM][kN][4]) {
  if constexpr (kType == kF32) {
    add_weighted_tf32<kWidth>(p, y, column0, o);
  } else {
    constexpr int kRow = MmaSizes<kWidth, kType>::kRow;
    const Reader<kRow> of_y = Reader<kRow>::rows();
#pragma unroll
    for (int k = 0; k < kRows; k += 2) {
      u32 a[kM][4];
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        a[m][0] = pack_rounded<kType>(p[m][k][0], p[m][k][1]);
        a[m][1] = pack_rounded<kType>(p[m][k][2], p[m][k][3]);
        a[m][2] = pack_rounded<kType>(p[m][k + 1][0], p[m][k + 1][1]);
        a[m][3] = pack_rounded<kType>(p[m][k + 1][2], p[m][k + 1][3]);
      }
#pragma unroll
      for (int n = 0; n < kN; n += 2) {
        u32 b[4];
        load_matrices_transposed(b, of_y.at(y, 8 * k, column0 + n));
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          mma<kType>(o[m][n], a[m], b[0], b[1]);
          mma<kType>(o[m][n + 1], a[m], b[2], b[3]);
        }
      }
    }
  }
}

// The column, from the first of add_weighted on, of element e of this lane's n-th result.
template <int kType>
__device__ __forceinline__ int column_of(int n, int e) {
  const int t = threadIdx.x & 3;
  return kType == kF32 ? n / 4 * 32 + 8 * t + 4 * (e % 2) + n % 4 : 8 * n + 2 * t + e % 2;
}

// Results of 16 rows from row0 on, times `low` (rows g) and `high` (rows g + 8), into a tile, in its type.
template <int kType, int kWidth, int kN>
__device__ __forceinline__ void put_rows(SharedAt tile, int row0, int column0, const float (&o)[kN][4],
                                         float low, float high) {
  constexpr int kRow = MmaSizes<kWidth, kType>::kRow;
  const int lane = threadIdx.x & 31, row = row0 + lane / 4;
  if constexpr (kType == kF32) {
#pragma unroll
    for (int n = 0; n < kN; n += 4)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int chunk = 2 * (column0 + n) + 2 * (lane % 4) + e % 2;
        const float by = e < 2 ? low : high;
        const auto word = [&](int of) { return __float_as_uint(o[n + of][e] * by); };
        shared_store16(tile + tile_offset<kRow>(row + e / 2 * 8, chunk),
                       make_uint4(word(0), word(1), word(2), word(3)));
      }
  } else {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const SharedAt to = tile + (tile_offset<kRow>(row, column0 + n) + 4 * (lane % 4));
      shared_store4(to, pack_rounded<kType>(o[n][0] * low, o[n][1] * low));
      shared_store4(to + 8 * kRow, pack_rounded<kType>(o[n][2] * high, o[n][3] * high));
    }
  }
}

}  // namespace plimsoll::cuda
