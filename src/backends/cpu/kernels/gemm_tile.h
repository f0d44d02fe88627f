// One tile of C, the part of gemm that is compiled once per instruction set (gemm_tile.cpp). gemm.cpp cuts C
// into tiles and hands them to the threads.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/gemm.h"

namespace plimsoll::cpu {

/// Products per granule: the longest run of k that is summed in registers before it is added to C.
inline constexpr int64_t kGemmGranule = 256;
/// Most columns of a tile: its packed B is 256 KiB, at home in any second-level cache.
inline constexpr int64_t kGemmMaxTileColumns = 256;
/// Floats of scratch for one packed panel of A: 16 rows by a granule.
inline constexpr int64_t kGemmPanelFloats = 16 * kGemmGranule;

/// Rows [m0, m1) and columns [n0, n1) of C, n1 - n0 <= kGemmMaxTileColumns.
struct GemmTile {
  int64_t m0 = 0, m1 = 0, n0 = 0, n1 = 0;
};

/// Computes one tile, over the whole of k. `scratch`, aligned to 64: kGemmPanelFloats and, behind them, the
/// tile's columns rounded up to 32 times min(k, kGemmGranule) floats.
void gemm_tile(const GemmArgs& args, const GemmTile& tile, float* scratch);

}  // namespace plimsoll::cpu
