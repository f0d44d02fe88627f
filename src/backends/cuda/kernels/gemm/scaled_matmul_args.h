// Arguments of scaled_matmul.cu.
#pragma once

#include "backends/cuda/kernels/gemm/scaled_codes_args.h"

namespace plimsoll::cuda {

/// Codes of a matrix with rows of `cols` elements, and the scales of its blocks.
struct CodedMatrix {
  CodeScheme scheme;
  const unsigned char* codes = nullptr;
  const void* scales = nullptr;
  i64 cols = 0;
};
/// out [rows, cols], f32 or bf16, which holds each number: columns [column, column + cols) of rows [row, row
/// + rows), codes times scales of blocks. `column` is a multiple of 8.
struct DequantizeCodes {
  CodedMatrix matrix;
  Operand out;
  i64 row = 0, column = 0, rows = 0, cols = 0;
};
/// What a product is multiplied with: a[0] b[0] inverse; and 1 behind it where it `adds` to what lies there,
/// else 0.
struct ProductFactor {
  const float *a = nullptr, *b = nullptr;
  float inverse = 1;
  int adds = 0;
  float* out = nullptr;
};

inline constexpr DeviceKernel<DequantizeCodes> kDequantizeCodes{"gemm/scaled_matmul", "dequantize_codes"};
inline constexpr DeviceKernel<ProductFactor> kProductFactor{"gemm/scaled_matmul", "product_factor"};

}  // namespace plimsoll::cuda
