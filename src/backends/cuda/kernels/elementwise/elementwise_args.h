// Arguments of elementwise.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

enum class BinaryOp : int { kAdd = 0, kMul = 1 };
struct Binary {
  Operand x, y, out;
  i64 n = 0;
  BinaryOp what = BinaryOp::kAdd;
};
/// out = x, times s[0] where that is given.
struct Scaled {
  Operand x;
  const float* s = nullptr;
  Operand out;
  i64 n = 0;
};
struct BiasAddRows {
  Operand x, bias, out;
  i64 n = 0, cols = 0;
};
/// Rows of a row pitch to dense ones in another dtype; `tf32`: rounded to that.
struct CastRows {
  Operand x;
  i64 stride = 0;
  Operand out;
  i64 rows = 0, cols = 0;
  int tf32 = 0;
};
/// Four axes, the last the innermost; strides in units of `unit` bytes: 1, 2, 4 or 16.
struct CopyStrided {
  const void* from_data = nullptr;
  void* to_data = nullptr;
  i64 extent[4] = {1, 1, 1, 1}, from[4] = {}, to[4] = {};
  int unit = 1;
};

inline constexpr DeviceKernel<Binary> kBinary{"elementwise/elementwise", "binary"};
inline constexpr DeviceKernel<Scaled> kScaled{"elementwise/elementwise", "scaled"};
/// x of bytes, without a factor.
inline constexpr DeviceKernel<Scaled> kCastBytes{"elementwise/elementwise", "cast_bytes"};
inline constexpr DeviceKernel<BiasAddRows> kBiasAddRows{"elementwise/elementwise", "bias_add_rows"};
inline constexpr DeviceKernel<CastRows> kCastRows{"elementwise/elementwise", "cast_rows"};
inline constexpr DeviceKernel<CopyStrided> kCopyStrided{"elementwise/elementwise", "copy_strided"};

}  // namespace plimsoll::cuda
