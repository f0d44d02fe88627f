// Products of bf16 on AMX tiles: tdpbf16ps adds to each of 16 x 16 sums the product of 32 k. Two tiles of A
// by two of B keep four of sums busy: each tile that is loaded is used twice. A panel of A is used with
// several of B, so B is loaded as what will not be used again: 18 steps of A then stay in 48 KiB beside it.
#include <immintrin.h>

#include "backends/cpu/kernels/gemm/gemm_bf16.h"

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")

namespace plimsoll::cpu::bf16 {
namespace {

// What ldtilecfg reads: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileConfig kConfig;

void begin() { _tile_loadconfig(&kConfig); }
void end() { _tile_release(); }

// Tiles 0 to 3: sums, left and right, above and below; 4 and 5: A, 6 and 7: B.
template <bool kBelow, bool kRight>
void multiply_tiles(const Block& block) {
  float* sums = block.sums;
  if (block.from_zero) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, 64);
    if constexpr (kRight) _tile_loadd(1, sums + kTileFloats, 64);
    if constexpr (kBelow) _tile_loadd(2, sums + 2 * kTileFloats, 64);
    if constexpr (kBelow && kRight) _tile_loadd(3, sums + 3 * kTileFloats, 64);
  }
  const std::byte* a = block.a;
  const std::byte* b = block.b;
  for (int64_t s = 0; s < block.steps; ++s, a += kPanelStepBytes, b += kPanelStepBytes) {
    _tile_loadd(4, a, 64);
    _tile_stream_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kRight) {
      _tile_stream_loadd(7, b + 1024, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kBelow) {
      _tile_loadd(5, a + 1024, 64);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kBelow && kRight) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  if constexpr (kRight) _tile_stored(1, sums + kTileFloats, 64);
  if constexpr (kBelow) _tile_stored(2, sums + 2 * kTileFloats, 64);
  if constexpr (kBelow && kRight) _tile_stored(3, sums + 3 * kTileFloats, 64);
}

void multiply(const Block& block) {
  if (block.row_tiles == 2)
    block.column_tiles == 2 ? multiply_tiles<true, true>(block) : multiply_tiles<true, false>(block);
  else
    block.column_tiles == 2 ? multiply_tiles<false, true>(block) : multiply_tiles<false, false>(block);
}

}  // namespace

const Kernels kAmxKernels = {begin, multiply, end, 18};

}  // namespace plimsoll::cpu::bf16

#pragma GCC pop_options
