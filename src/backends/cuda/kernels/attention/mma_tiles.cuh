// Tiles of elements in shared memory, for products of matrix units: rows of kWidth elements, whose 16-byte
// chunks are exchanged by the row's number (chunk c of row r lies at c ^ (r % 8)), so that the eight rows
// that an ldmatrix reads lie in different banks. kType: kBf16, kF16, or kF32 for products in TF32.
//
// Rows beyond the sequence and columns beyond the head's size are zeros.

#pragma once

#include "backends/cuda/device/async.cuh"
#include "backends/cuda/device/mma.cuh"
#include "backends/cuda/kernels/attention/attention_args.h"
#include "backends/cuda/kernels/attention/mma_args.h"

namespace plimsoll::cuda {

template <int kType>
struct MmaElement {
  using Type = u16;
};
template <>
struct MmaElement<kF32> {
  using Type = u32;
};

// A head's rows in a sequence, token by token.
template <int kType>
struct Rows {
  using Element = typename MmaElement<kType>::Type;
  static constexpr int kChunk = 16 / sizeof(Element);
  Element* data;
  i64 stride;  // elements from a token to the next
  int tokens, dim;
  bool whole;  // chunks lie at multiples of 16 bytes
};
template <int kType>
__device__ __forceinline__ Rows<kType> rows_of(const Attention& a, const Operand& x, i64 stride, i64 batch,
                                               int head) {
  constexpr int kChunk = Rows<kType>::kChunk;
  auto* data = (typename Rows<kType>::Element*)x.data + batch * a.tokens * stride + (i64)head * a.head_dim;
  return {data, stride, (int)a.tokens, a.head_dim,
          ((u64)data & 15) == 0 && stride % kChunk == 0 && a.head_dim % kChunk == 0};
}

// kRow: a row's bytes.
template <int kRow>
__device__ __forceinline__ int tile_offset(int row, int chunk) {
  return row * kRow + ((chunk ^ (row & 7)) << 4);
}

// The elements that are there of the chunk at `from`, of `left` in the row.
template <typename Element>
__device__ __forceinline__ uint4 load_part(const Element* from, int left) {
  constexpr int kBytes = sizeof(Element);
  u32 words[4] = {};
#pragma unroll
  for (int e = 0; e < 16 / kBytes; ++e)
    if (e < left) words[e * kBytes / 4] |= (u32)from[e] << 8 * (e * kBytes % 4);
  return make_uint4(words[0], words[1], words[2], words[3]);
}
template <typename Element>
__device__ __forceinline__ void store_part(Element* to, const uint4& v, int left) {
  constexpr int kBytes = sizeof(Element);
  const u32 words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int e = 0; e < 16 / kBytes; ++e)
    if (e < left) to[e] = (Element)(words[e * kBytes / 4] >> 8 * (e * kBytes % 4));
}

// The chunks of a tile that a thread moves: one of each kStep-th row.
template <int kType, int kWidth, int kThreads>
struct Share {
  static constexpr int kChunk = Rows<kType>::kChunk, kRow = MmaSizes<kWidth, kType>::kRow,
                       kChunks = kRow / 16, kStep = kThreads / kChunks;
  static_assert(kThreads % kChunks == 0);
  int chunk, row;
  __device__ __forceinline__ Share() : chunk((int)threadIdx.x % kChunks), row((int)threadIdx.x / kChunks) {}
};

// Rows row0 .. + kRows into a tile. Asynchronous where chunks are whole.
template <int kRows, int kWidth, int kThreads, int kType>
__device__ __forceinline__ void load_tile(SharedAt tile, const Rows<kType>& x, int row0) {
  using Mine = Share<kType, kWidth, kThreads>;
  const Mine share;
  const int left = x.dim - share.chunk * Mine::kChunk;
  int row = share.row;
  const auto* from = x.data + (row0 + row) * x.stride + share.chunk * Mine::kChunk;
#pragma unroll 2
  for (; row < kRows; row += Mine::kStep, from += Mine::kStep * x.stride) {
    const bool is_given = row0 + row < x.tokens && left > 0;
    const SharedAt to = tile + tile_offset<Mine::kRow>(row, share.chunk);
    if (x.whole)
      async_copy16(to, from, is_given);
    else
      shared_store16(to, load_part(from, is_given ? left : 0));
  }
}

// Rounds what this thread has loaded into a tile, once that is there, to TF32. 16 bits are multiplied as they
// are.
template <int kType, int kRows, int kWidth, int kThreads>
__device__ __forceinline__ void round_tile(SharedAt tile) {
  if constexpr (kType == kF32) {
    using Mine = Share<kType, kWidth, kThreads>;
    const Mine share;
#pragma unroll 2
    for (int row = share.row; row < kRows; row += Mine::kStep) {
      const SharedAt at = tile + tile_offset<Mine::kRow>(row, share.chunk);
      const uint4 v = shared_load16(at);
      shared_store16(at, make_uint4(tf32_word(v.x), tf32_word(v.y), tf32_word(v.z), tf32_word(v.w)));
    }
  }
}

// The other way.
template <int kRows, int kWidth, int kThreads, int kType>
__device__ __forceinline__ void store_tile(SharedAt tile, const Rows<kType>& x, int row0) {
  using Mine = Share<kType, kWidth, kThreads>;
  const Mine share;
  const int left = x.dim - share.chunk * Mine::kChunk;
  if (left <= 0) return;
  for (int row = share.row; row < kRows && row0 + row < x.tokens; row += Mine::kStep) {
    auto* to = x.data + (row0 + row) * x.stride + share.chunk * Mine::kChunk;
    const uint4 v = shared_load16(tile + tile_offset<Mine::kRow>(row, share.chunk));
    if (x.whole)
      *(uint4*)to = v;
    else
      store_part(to, v, left);
  }
}

}  // namespace plimsoll::cuda
