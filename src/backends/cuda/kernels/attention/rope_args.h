// Arguments of rope.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

struct RopeTable {
  const float* inv_freq = nullptr;
  const int* positions = nullptr;  // null: 0, 1, …
  float* table = nullptr;
  i64 rows = 0, half = 0;
  double factor = 1;
};
/// Heads behind the turned ones are copied, where y is not x.
struct RopeRows {
  Operand x, y;
  const float* table = nullptr;
  i64 rows = 0, stride = 0, heads = 0, turned = 0, half = 0, table_rows = 0;
  float sign = 1;
};

inline constexpr DeviceKernel<RopeTable> kRopeTable{"attention/rope", "rope_table"};
inline constexpr DeviceKernel<RopeRows> kRopeRows{"attention/rope", "rope_rows"};

}  // namespace plimsoll::cuda
