// Arguments of dequantize.cu.
#pragma once

#include "backends/cuda/kernels/gemm/coded_weight_args.h"

namespace plimsoll::cuda {

constexpr int kDequantizeThreads = 256;

/// out [n] of the scales of doubly quantised weights: map[code] * second + offset.
struct DequantizeScales {
  const unsigned char* codes = nullptr;
  const float *second = nullptr, *offset = nullptr;
  float* out = nullptr;
  i64 n = 0;
  float map[256];  ///< the signed dynamic map
};
/// out [rows, cols]: columns [column, column + cols) of rows [row, row + rows), rounded to out's dtype, or
/// `tf32`.
struct Dequantize {
  CodedWeight weight;
  Operand out;
  i64 row = 0, column = 0, rows = 0, cols = 0;
  int tf32 = 0;
};
static_assert(sizeof(DequantizeScales) <= kMostArgumentBytes);

inline constexpr DeviceKernel<DequantizeScales> kDequantizeScales{"gemm/dequantize", "dequantize_scales"};
inline constexpr DeviceKernel<Dequantize> kDequantize{"gemm/dequantize", "dequantize"};

}  // namespace plimsoll::cuda
