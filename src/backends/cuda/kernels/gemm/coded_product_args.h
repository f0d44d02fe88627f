// Arguments of coded_product.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Elements of a tile's side.
constexpr int kTurnTile = 64;

/// to [cols, rows] of from [rows, cols] with `row_bytes` from a row to the next; codes of 4 or 8 bits. Rows
/// and columns are multiples of 8, and addresses of 4.
struct TurnCodes {
  const unsigned char* from = nullptr;
  unsigned char* to = nullptr;
  int bits = 8;
  i64 row_bytes = 0, rows = 0, cols = 0;
};

/// How cuBLASLt reads the scales of `lines` lines, each with scales_of_k.
enum class ScaleLayout : int {
  kByLines = 0,  ///< [scales_of_k, lines]
  kByTiles = 1,  ///< [tiles of 128 lines, scales_of_k to whole fours]
  kTiled = 2     ///< tiles of 128 lines x 4: line l at l % 32 * 16 + l / 32 * 4
};
/// n scales; what there is none for is 0. Block l of k of line i is from[i' pitch + l], of operands that lie
/// across from[l pitch + i'], where i' = (first + i) / block_of_lines.
struct LayScales {
  const void* from = nullptr;
  void* to = nullptr;
  ScaleLayout layout = ScaleLayout::kByLines;
  int is_f32 = 1;  ///< else a byte
  int across = 0;
  i64 pitch = 0, first = 0, lines = 0, block_of_lines = 1, scales_of_k = 0, n = 0;
};

inline constexpr DeviceKernel<TurnCodes> kTurnCodes{"gemm/coded_product", "turn_codes"};
inline constexpr DeviceKernel<LayScales> kLayScales{"gemm/coded_product", "lay_scales"};

}  // namespace plimsoll::cuda
