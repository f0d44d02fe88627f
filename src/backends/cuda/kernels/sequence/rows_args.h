// Arguments of rows.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// out [n / tokens, tokens], counted from `first`. sign 0: start, where given, is of the sequence and is
/// added; -1: of the token, and taken off.
struct Positions {
  const int* start = nullptr;
  int* out = nullptr;
  i64 n = 0, tokens = 0;
  int sign = 0;
  int first = 0;
};
/// `each` rows of each sequence, by indices that ascend; -1, which is none, stands behind them. `back`: into
/// rows among zeros.
struct GatherRows {
  Operand x;
  i64 x_row = 0, x_sequence = 0;
  const int* index = nullptr;
  Operand out;
  i64 rows = 0, each = 0, cols = 0;
  int back = 0;
};

inline constexpr DeviceKernel<Positions> kPositions{"sequence/rows", "positions"};
inline constexpr DeviceKernel<GatherRows> kGatherRows{"sequence/rows", "gather_rows"};

}  // namespace plimsoll::cuda
