// Codes and scales in the places where cuBLASLt reads them.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/kernels/gemm/coded_product_args.h"

namespace plimsoll::cuda {

// A tile of 64 x 64 codes a block, a byte each in shared memory; four bytes at a time come and go.
extern "C" __global__ void __launch_bounds__(256) turn_codes(const __grid_constant__ TurnCodes a) {
  begin_grid();
  __shared__ unsigned char tile[kTurnTile][kTurnTile + 4];
  const int each = 32 / a.bits, words = kTurnTile / each;  // codes of a word, words of a tile's row
  const u32 mask = (1u << a.bits) - 1;
  const Place at = place_of(blockIdx.x, (a.cols + kTurnTile - 1) / kTurnTile);
  const i64 row = at.row * kTurnTile, col = at.col * kTurnTile;
  for (int i = threadIdx.x; i < kTurnTile * words; i += blockDim.x) {
    const int r = i / words, c = i % words * each;
    if (row + r >= a.rows || col + c >= a.cols) continue;
    const u32 word = *(const u32*)(a.from + (row + r) * a.row_bytes + (col + c) * a.bits / 8);
    for (int e = 0; e < each; ++e) tile[r][c + e] = (unsigned char)(word >> e * a.bits & mask);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTurnTile * words; i += blockDim.x) {
    const int c = i / words, r = i % words * each;
    if (row + r >= a.rows || col + c >= a.cols) continue;
    u32 word = 0;
    for (int e = 0; e < each; ++e) word |= (u32)tile[r + e][c] << e * a.bits;
    *(u32*)(a.to + ((col + c) * a.rows + row + r) * a.bits / 8) = word;
  }
}

namespace {

// Which line and which block of k the scale i is of.
__device__ __forceinline__ Place place_of_scale(const LayScales& a, i64 i) {
  const i64 fours = (a.scales_of_k + 3) / 4 * 4;
  if (a.layout == ScaleLayout::kByLines) {
    const Place at = place_of(i, a.lines);
    return {at.col, at.row};
  }
  if (a.layout == ScaleLayout::kByTiles) {
    const Place at = place_of(i, fours);
    return {at.row * 128, at.col};
  }
  const int within = (int)(i % 512);
  const Place tile = place_of(i / 512, fours / 4);
  return {tile.row * 128 + within % 16 / 4 * 32 + within / 16, tile.col * 4 + within % 4};
}

}  // namespace

extern "C" __global__ void lay_scales(const __grid_constant__ LayScales a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  const Place at = place_of_scale(a, i);
  const bool is_there = at.row < a.lines && at.col < a.scales_of_k;
  const i64 line = (a.first + at.row) / a.block_of_lines;
  const i64 from = a.across ? at.col * a.pitch + line : line * a.pitch + at.col;
  if (a.is_f32)
    ((float*)a.to)[i] = is_there ? ((const float*)a.from)[from] : 0.0f;
  else
    ((unsigned char*)a.to)[i] = is_there ? ((const unsigned char*)a.from)[from] : 0;
}

}  // namespace plimsoll::cuda
