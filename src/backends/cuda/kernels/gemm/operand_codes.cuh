// Codes and scales of what is loaded, to the bit as numerics/blocks.cpp: the scale of each block from its
// largest magnitude, and the codes, row by row, or both copies of a tile.
#pragma once

#include "backends/cuda/device/philox.cuh"
#include "backends/cuda/kernels/gemm/operand_runs.cuh"

namespace plimsoll::cuda {

// What a block's numbers are multiplied with, and what is stored of it.
struct BlockScale {
  float multiplier = 1, value = 1;
  u32 code = 0;
};

__device__ __forceinline__ BlockScale power_of_two_scale(float amax) {
  BlockScale scale;
  if (amax > 0.0f && __float_as_uint(amax) < kInfinityBits) {
    const float exact = fminf(__fdiv_rn(448.0f, amax), kLargestF32);
    scale.multiplier = __uint_as_float(__float_as_uint(exact) & 0xff800000u);
    scale.value = __fdiv_rn(1.0f, scale.multiplier);
  }
  return scale;
}
__device__ __forceinline__ BlockScale e8m0_scale(float amax) {
  const u32 bits = __float_as_uint(__fmul_rn(amax, 1.0f / 448.0f));
  BlockScale scale;
  scale.code = bits == kInfinityBits ? 0xfeu : bits < 0x00400001u ? 0 : (bits + 0x7fffffu) >> 23;
  scale.multiplier = __uint_as_float(bits == kInfinityBits ? 0x00400000u : (0xfeu - scale.code) << 23);
  return scale;
}
__device__ __forceinline__ BlockScale e4m3_scale(float amax, const DeviceTensorScale& tensor) {
  BlockScale scale;
  scale.code = nearest_code<MiniE4m3>(__fmul_rn(amax, __fmul_rn(tensor.scale, 1.0f / 6.0f)));
  const float value = __fmul_rn(value_of_code<MiniE4m3>(scale.code), __fdiv_rn(1.0f, tensor.scale));
  scale.multiplier = fminf(__fdiv_rn(1.0f, value), kLargestF32);
  return scale;
}
__device__ __forceinline__ BlockScale scale_of_block(const QuantizeOperand& a,
                                                     const DeviceTensorScale& tensor, u32 largest) {
  const float amax = __uint_as_float(largest);
  switch (a.scheme.scales) {
    case BlockScales::kPowerOfTwo:
      return power_of_two_scale(amax);
    case BlockScales::kE8m0:
      return e8m0_scale(amax);
    case BlockScales::kE4m3:
      return e4m3_scale(amax, tensor);
    default: {
      BlockScale scale;
      scale.multiplier = tensor.scale;
      return scale;
    }
  }
}
__device__ __forceinline__ void store_scale(const QuantizeOperand& a, i64 row, i64 col,
                                            const BlockScale& scale) {
  const i64 of_row = (a.pitch + a.scheme.block_cols - 1) / a.scheme.block_cols;
  const i64 at = row / a.scheme.block_rows * of_row + col / a.scheme.block_cols;
  if (a.scheme.scales == BlockScales::kPowerOfTwo)
    ((float*)a.scales)[at] = scale.value;
  else if (a.scheme.scales != BlockScales::kNone)
    ((unsigned char*)a.scales)[at] = (unsigned char)scale.code;
}

// The words of eight elements of a row, in the order of the codes.
struct Draws {
  const QuantizeOperand& a;
  u32 sequence;
  u64 element;

  __device__ __forceinline__ Draws(const QuantizeOperand& args, i64 row, i64 col) : a(args) {
    const bool turned = args.source.transposed != 0;
    const Place token = place_of(turned ? col : row, args.tokens);
    sequence = args.random[3] + (u32)token.row;
    element = (u64)(turned ? row * args.tokens + token.col : token.col * args.source.cols + col);
  }
  __device__ __forceinline__ uint4 words(int e) const {
    const u64 quad = (element + (u64)e) / 4;
    return philox4((u32)quad, sequence + (u32)(quad >> 32), a.random[2], a.key, a.random[0], a.random[1]);
  }
};

__device__ __forceinline__ void store_bytes(unsigned char* to, u64 bytes, int n) {
  if (n == 8 && ((u64)to & 7) == 0) {
    *(u64*)to = bytes;
    return;
  }
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (e < n) to[e] = (unsigned char)(bytes >> 8 * e);
}
__device__ __forceinline__ void store_codes(const QuantizeOperand& a, i64 row, i64 col, int n,
                                            const u32 (&codes)[8]) {
  u64 bytes = 0;
  if (a.scheme.format != CodeFormat::kE2m1) {
#pragma unroll
    for (int e = 0; e < 8; ++e) bytes |= (u64)codes[e] << 8 * e;
    return store_bytes(a.codes + row * a.pitch + col, bytes, n);
  }
#pragma unroll
  for (int e = 0; e < 8; ++e) bytes |= (u64)(e < n ? codes[e] : 0) << 4 * e;
  store_bytes(a.codes + row * ((a.pitch + 1) / 2) + col / 2, bytes, (n + 1) / 2);
}

template <class M>
__device__ __forceinline__ void nearest_codes(const float (&v)[8], float multiplier, u32 (&codes)[8]) {
#pragma unroll
  for (int e = 0; e < 8; ++e) codes[e] = scaled_code<M>(v[e], multiplier);
}
__device__ __forceinline__ void drawn_codes(const QuantizeOperand& a, i64 row, i64 col, const float (&v)[8],
                                            float multiplier, u32 (&codes)[8]) {
  const Draws draws(a, row, col);
  uint4 words = draws.words(0);
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const int place = (int)((draws.element + (u64)e) % 4);
    if (e > 0 && place == 0) words = draws.words(e);
    codes[e] = drawn_code<MiniE2m1>(v[e], multiplier, word_of(words, place));
  }
}
__device__ __forceinline__ void write_codes(const QuantizeOperand& a, i64 row, i64 col, int n,
                                            const float (&v)[8], float multiplier) {
  if (n == 0) return;
  u32 codes[8];
  if (a.random != nullptr)
    drawn_codes(a, row, col, v, multiplier, codes);
  else if (a.scheme.format == CodeFormat::kE4m3)
    nearest_codes<MiniE4m3>(v, multiplier, codes);
  else if (a.scheme.format == CodeFormat::kE5m2)
    nearest_codes<MiniE5m2>(v, multiplier, codes);
  else
    nearest_codes<MiniE2m1>(v, multiplier, codes);
  store_codes(a, row, col, n, codes);
}

// Blocks of one row, each of neighbouring lanes.
__device__ __forceinline__ void quantize_run(const QuantizeOperand& a, const DeviceTensorScale& tensor,
                                             i64 row, i64 col, int n, const float (&v)[8]) {
  u32 largest = 0;
  if (a.scheme.scales != BlockScales::kNone)
    largest = largest_of_lanes(largest_bits(v), a.scheme.block_cols / 8);
  const BlockScale scale = scale_of_block(a, tensor, largest);
  write_codes(a, row, col, n, v, scale.multiplier);
  if (n > 0 && col % a.scheme.block_cols == 0) store_scale(a, row, col, scale);
}

__device__ __forceinline__ DeviceTensorScale tensor_of(const QuantizeOperand& a) {
  return a.tensor == nullptr ? DeviceTensorScale() : *a.tensor;
}

// Both copies of a tile of 128 x 128: sixteen threads have a row, a thread eight columns of eight rows, which
// stay in registers. Its eight codes of a column of the transpose are a word in shared memory, where columns
// lie so that neighbours neither write nor read in the same bank.
template <typename Load>
__device__ __forceinline__ void quantize_both_of(const QuantizeOperand& plain, const QuantizeOperand& turned,
                                                 Load load) {
  constexpr int kLines = 16, kPitch = kLines + 1, kMostBlocks = kTileColumns / 32;
  __shared__ u32 largest[kLines * kTileColumns];
  __shared__ float multipliers[kMostBlocks * kTileColumns];
  __shared__ u64 words[kTileColumns * kPitch];
  const OperandSource &x = plain.source, &of_turned = turned.source;
  const Place tile = place_of(blockIdx.x, (x.cols + kTileColumns - 1) / kTileColumns);
  const int lane = threadIdx.x & 15, line = threadIdx.x >> 4, width = turned.scheme.block_cols;
  const i64 col = tile.col * kTileColumns + 8 * lane, first = tile.row * kTileColumns + 8 * line;
  float v[8][8];
  u32 most[8] = {};
#pragma unroll
  for (int step = 0; step < 8; ++step) {
    const i64 row = first + step < of_turned.cols ? turned_row(of_turned, first + step) : -1;
    const int n = row < 0 ? 0 : part_of(col, x.cols);
    load(n == 0 ? 0 : row, n == 0 ? 0 : col, n, v[step]);
    quantize_run(plain, DeviceTensorScale(), row, col, n, v[step]);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const u32 bits = bits_of_magnitude(v[step][e]);
      if (bits <= kInfinityBits && bits > most[e]) most[e] = bits;
    }
  }
#pragma unroll
  for (int e = 0; e < 8; ++e) largest[line * kTileColumns + 8 * lane + e] = most[e];
  __syncthreads();
  for (int i = threadIdx.x; i < kTileColumns / width * kTileColumns; i += 256) {
    const int block = i / kTileColumns, column = i % kTileColumns;
    u32 of_block = 0;
    for (int l = block * width / 8; l < (block + 1) * width / 8; ++l)
      if (largest[l * kTileColumns + column] > of_block) of_block = largest[l * kTileColumns + column];
    const BlockScale scale = scale_of_block(turned, DeviceTensorScale(), of_block);
    multipliers[i] = scale.multiplier;
    const i64 row = tile.col * kTileColumns + column, token = tile.row * kTileColumns + block * width;
    if (row < x.cols && token < of_turned.cols) store_scale(turned, row, token, scale);
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    const float multiplier = multipliers[8 * line / width * kTileColumns + 8 * lane + e];
    u64 bytes = 0;
#pragma unroll
    for (int step = 0; step < 8; ++step)
      bytes |= (u64)scaled_code<MiniE4m3>(v[step][e], multiplier) << 8 * step;
    words[(16 * e + lane) * kPitch + line] = bytes;
  }
  __syncthreads();
  const i64 token = tile.row * kTileColumns + 8 * lane;
  for (int column = line; column < kTileColumns; column += kLines) {
    const i64 row = tile.col * kTileColumns + column;
    const int n = row < x.cols ? part_of(token, of_turned.cols) : 0;
    if (n > 0)
      store_bytes(turned.codes + row * turned.pitch + token,
                  words[(16 * (column % 8) + column / 8) * kPitch + lane], n);
  }
}

}  // namespace plimsoll::cuda
