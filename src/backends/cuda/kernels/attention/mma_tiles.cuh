// Tiles of 16-bit elements in shared memory, for products of matrix units: rows of kWidth elements, whose
// 16-byte chunks are exchanged by the row's number (chunk c of row r lies at c ^ (r % 8)), so that the eight
// rows that an ldmatrix reads lie in different banks.
//
// Rows beyond the sequence and columns beyond the head's size are zeros.

#pragma once

#include "backends/cuda/device/async.cuh"
#include "backends/cuda/device/mma.cuh"
#include "backends/cuda/kernels/attention/attention_args.h"

namespace plimsoll::cuda {

// A head's rows in a sequence, token by token.
struct Rows {
  u16* data;
  i64 stride;  // elements from a token to the next
  int tokens, dim;
  bool whole;  // chunks of 8 elements lie at multiples of 16 bytes
};
__device__ __forceinline__ Rows rows_of(const Attention& a, const Operand& x, i64 stride, i64 batch,
                                        int head) {
  u16* data = (u16*)x.data + batch * a.tokens * stride + (i64)head * a.head_dim;
  return {data, stride, (int)a.tokens, a.head_dim,
          ((u64)data & 15) == 0 && stride % 8 == 0 && a.head_dim % 8 == 0};
}

template <int kWidth>
__device__ __forceinline__ int tile_offset(int row, int chunk) {
  return row * (2 * kWidth) + ((chunk ^ (row & 7)) << 4);
}

// The elements that are there of the 8 at `from`, of `left` in the row.
__device__ __forceinline__ uint4 load_part(const u16* from, int left) {
  u32 words[4] = {};
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (e < left) words[e / 2] |= (u32)from[e] << 16 * (e % 2);
  return make_uint4(words[0], words[1], words[2], words[3]);
}
__device__ __forceinline__ void store_part(u16* to, const uint4& v, int left) {
  const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (e < left) to[e] = (u16)(words[e / 2] >> 16 * (e % 2));
}

// Rows row0 .. + kRows into a tile. Asynchronous where chunks are whole.
template <int kRows, int kWidth, int kThreads>
__device__ __forceinline__ void load_tile(SharedAt tile, const Rows& x, int row0) {
  constexpr int kChunks = kWidth / 8, kStep = kThreads / kChunks;  // rows that the block takes at once
  static_assert(kThreads % kChunks == 0);
  const int chunk = (int)threadIdx.x % kChunks, left = x.dim - chunk * 8;
  int row = (int)threadIdx.x / kChunks;
  const u16* from = x.data + (row0 + row) * x.stride + chunk * 8;
#pragma unroll 2
  for (; row < kRows; row += kStep, from += kStep * x.stride) {
    const bool is_given = row0 + row < x.tokens && left > 0;
    const SharedAt to = tile + tile_offset<kWidth>(row, chunk);
    if (x.whole)
      async_copy16(to, from, is_given);
    else
      shared_store16(to, load_part(from, is_given ? left : 0));
  }
}

// The other way.
template <int kRows, int kWidth, int kThreads>
__device__ __forceinline__ void store_tile(SharedAt tile, const Rows& x, int row0) {
  constexpr int kChunks = kWidth / 8, kStep = kThreads / kChunks;
  const int chunk = (int)threadIdx.x % kChunks, left = x.dim - chunk * 8;
  if (left <= 0) return;
  for (int row = (int)threadIdx.x / kChunks; row < kRows && row0 + row < x.tokens; row += kStep) {
    u16* to = x.data + (row0 + row) * x.stride + chunk * 8;
    const uint4 v = shared_load16(tile + tile_offset<kWidth>(row, chunk));
    if (x.whole)
      *(uint4*)to = v;
    else
      store_part(to, v, left);
  }
}

// Where a lane reads the fragments of a tile. `rows`: an operand a [16 rows, 16 columns], or, transposed, b
// of 16 rows and two times 8 columns. `columns`: b of 16 columns (the product's inner extent) of two times 8
// rows.
template <int kWidth>
struct Reader {
  int row, flip;
  static __device__ __forceinline__ Reader rows() {
    const int lane = threadIdx.x & 31;
    return {(lane & 15) * 2 * kWidth, (lane >> 4 ^ (lane & 7)) << 4};
  }
  static __device__ __forceinline__ Reader columns() {
    const int lane = threadIdx.x & 31;
    return {((lane & 7) + (lane >> 4) * 8) * 2 * kWidth, ((lane >> 3 & 1) ^ (lane & 7)) << 4};
  }
  // row0 a multiple of 16 (8), chunk even.
  __device__ __forceinline__ SharedAt at(SharedAt tile, int row0, int chunk) const {
    return tile + (row + row0 * 2 * kWidth + (chunk << 4 ^ flip));
  }
};

// s[m][n] = rows [x0 + 16m ..] of x times rows [8n ..] of y, over all columns.
template <int kType, int kWidth, int kM, int kN>
__device__ __forceinline__ void multiply_rows(SharedAt x, int x0, SharedAt y, float (&s)[kM][kN][4]) {
  const Reader<kWidth> of_x = Reader<kWidth>::rows(), of_y = Reader<kWidth>::columns();
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) s[m][n][e] = 0;
#pragma unroll
  for (int chunk = 0; chunk < kWidth / 8; chunk += 2) {
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

// o[m][n] += p[m], rounded, times the columns [8 (chunk0 + n) ..] of y's rows, of which there are 8 kRows.
template <int kType, int kWidth, int kM, int kRows, int kN>
__device__ __forceinline__ void add_weighted(const float (&p)[kM][kRows][4], SharedAt y, int chunk0,
                                             float (&o)[kM][kN][4]) {
  const Reader<kWidth> of_y = Reader<kWidth>::rows();
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
      load_matrices_transposed(b, of_y.at(y, 8 * k, chunk0 + n));
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        mma<kType>(o[m][n], a[m], b[0], b[1]);
        mma<kType>(o[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// Results of 16 rows from row0 on, times `low` (rows g) and `high` (rows g + 8), rounded into a tile.
template <int kType, int kWidth, int kN>
__device__ __forceinline__ void put_rows(SharedAt tile, int row0, int chunk0, const float (&o)[kN][4],
                                         float low, float high) {
  const int lane = threadIdx.x & 31, row = row0 + lane / 4, word = 4 * (lane % 4);
#pragma unroll
  for (int n = 0; n < kN; ++n) {
    const SharedAt to = tile + (tile_offset<kWidth>(row, chunk0 + n) + word);
    shared_store4(to, pack_rounded<kType>(o[n][0] * low, o[n][1] * low));
    shared_store4(to + 8 * 2 * kWidth, pack_rounded<kType>(o[n][2] * high, o[n][3] * high));
  }
}

}  // namespace plimsoll::cuda
