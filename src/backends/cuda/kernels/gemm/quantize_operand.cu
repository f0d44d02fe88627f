// Quantises operands of products in FP8 and FP4, to the bit as numerics/blocks.cpp: the largest magnitudes of
// blocks, or of the tensor in a pass of its own, their scales, and the codes.
#include "backends/cuda/device/philox.cuh"
#include "backends/cuda/kernels/gemm/operand_runs.cuh"

namespace plimsoll::cuda {
namespace {

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

}  // namespace

extern "C" __global__ void __launch_bounds__(256) operand_amax(const __grid_constant__ OperandAmax a) {
  __shared__ u32 shared[kRunWarps];
  u32 most = 0;
  visit_runs(a.source, [&](i64, i64, int, const float(&v)[8]) { most = largest_bits(v); });
  most = largest_of_block(most, shared);
  if (threadIdx.x == 0) a.largest[blockIdx.x] = most;
}
extern "C" __global__ void __launch_bounds__(256) operand_amax_turned(const __grid_constant__ OperandAmax a) {
  __shared__ u32 shared[kRunWarps];
  u32 most = 0;
  visit_turned(a.source, [&](i64, i64, int, const float(&v)[8]) {
    const u32 bits = largest_bits(v);
    if (bits > most) most = bits;
  });
  most = largest_of_block(most, shared);
  if (threadIdx.x == 0) a.largest[blockIdx.x] = most;
}

// numerics::tensor_scale and given_scale; one block.
extern "C" __global__ void __launch_bounds__(256) operand_scale(const __grid_constant__ OperandScale a) {
  __shared__ u32 shared[8];
  u32 most = 0;
  for (i64 i = threadIdx.x; i < a.n; i += blockDim.x)
    if (a.largest[i] > most) most = a.largest[i];
  most = largest_of_block(most, shared);
  if (threadIdx.x != 0) return;
  DeviceTensorScale tensor;
  tensor.amax = __uint_as_float(most);
  if (a.given != nullptr)
    tensor.scale = a.given[0] == 0.0f ? 1.0f : a.given[0];
  else if (most != 0 && most < kInfinityBits)
    tensor.scale = fminf(__fdiv_rn(a.largest_code, tensor.amax), kLargestF32);
  tensor.decode = __fdiv_rn(1.0f, tensor.scale);
  *a.tensor = tensor;
  if (a.amax != nullptr) *a.amax = tensor.amax;
  if (a.decode != nullptr) *a.decode = tensor.decode;
}

extern "C" __global__ void __launch_bounds__(256) quantize_runs(const __grid_constant__ QuantizeOperand a) {
  const DeviceTensorScale tensor = tensor_of(a);
  visit_runs(a.source,
             [&](i64 row, i64 col, int n, const float(&v)[8]) { quantize_run(a, tensor, row, col, n, v); });
}
extern "C" __global__ void __launch_bounds__(256) quantize_turned(const __grid_constant__ QuantizeOperand a) {
  const DeviceTensorScale tensor = tensor_of(a);
  visit_turned(a.source,
               [&](i64 row, i64 col, int n, const float(&v)[8]) { quantize_run(a, tensor, row, col, n, v); });
}

// A tile of 128 x 128 a block: sixteen threads a row, eight steps of sixteen rows, which stay in registers.
extern "C" __global__ void __launch_bounds__(256)
    quantize_tiles_128(const __grid_constant__ QuantizeOperand a) {
  __shared__ u32 shared[8];
  const Place tile = place_of(blockIdx.x, (a.source.cols + 127) / 128);
  const i64 col = tile.col * 128 + 8 * (threadIdx.x & 15), first = tile.row * 128 + (threadIdx.x >> 4);
  float v[8][8];
  u32 most = 0;
#pragma unroll
  for (int step = 0; step < 8; ++step) {
    const i64 row = first + 16 * step;
    const int n = row < a.source.rows ? part_of(col, a.source.cols) : 0;
    load_quantized(a.source, n == 0 ? 0 : row, n == 0 ? 0 : col, n, v[step]);
    const u32 bits = largest_bits(v[step]);
    if (bits > most) most = bits;
  }
  const BlockScale scale = scale_of_block(a, tensor_of(a), largest_of_block(most, shared));
#pragma unroll
  for (int step = 0; step < 8; ++step) {
    const i64 row = first + 16 * step;
    if (row < a.source.rows) write_codes(a, row, col, part_of(col, a.source.cols), v[step], scale.multiplier);
  }
  if (threadIdx.x == 0) store_scale(a, tile.row * 128, tile.col * 128, scale);
}
// A tile of 16 x 16 a warp, two lanes a row; the block's eight lie side by side.
extern "C" __global__ void __launch_bounds__(256)
    quantize_tiles_16(const __grid_constant__ QuantizeOperand a) {
  const Place at = place_of(blockIdx.x, (a.source.cols + kTileColumns - 1) / kTileColumns);
  const int lane = threadIdx.x & 31;
  const i64 first = at.col * kTileColumns + 16 * (threadIdx.x >> 5);
  const i64 row = at.row * 16 + lane / 2, col = first + 8 * (lane % 2);
  const int n = row < a.source.rows ? part_of(col, a.source.cols) : 0;
  float v[8];
  load_quantized(a.source, n == 0 ? 0 : row, n == 0 ? 0 : col, n, v);
  const BlockScale scale = scale_of_block(a, tensor_of(a), largest_of_lanes(largest_bits(v), 32));
  write_codes(a, row, col, n, v, scale.multiplier);
  if (lane == 0 && n > 0) store_scale(a, at.row * 16, first, scale);
}

}  // namespace plimsoll::cuda
