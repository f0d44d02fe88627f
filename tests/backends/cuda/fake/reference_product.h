// The product that cuBLASLt's documents define, on the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake {

/// library_types.h.
enum { kF32 = 0, kF16 = 2, kBf16 = 14, kE4m3 = 28, kE5m2 = 29, kE2m1 = 33 };
inline size_t bytes_of(int type) { return type == kF32 ? 4 : type == kF16 || type == kBf16 ? 2 : 1; }

/// Column-major, rows x columns elements with `pitch` from a column to the next; `batch` of them.
struct Matrix {
  int type = kF32;
  uint64_t rows = 0, columns = 0;
  int64_t pitch = 0, batch_stride = 0;
  int32_t batch = 1;
};

/// Of an operand in FP8 or FP4: which elements share one (cublasLtMatmulMatrixScale_t), and where they lie.
enum { kPerTensor = 0, kPer16 = 1, kPer32 = 2, kPer128 = 4, kPerTile = 5 };
struct Scales {
  int32_t mode = kPerTensor;
  const void* data = nullptr;
};

/// What is done beside the product.
enum { kPlain = 1, kBias = 4, kSumRowsOfA = 256, kSumColumnsOfB = 512 };  // CUBLASLT_EPILOGUE_*

/// d = alpha op(a) op(b) + beta c, with sums in f32, then the epilogue. d may be c.
struct MatrixProduct {
  Matrix a, b, c, d;
  Scales a_scales, b_scales;
  bool a_transposed = false, b_transposed = false, rounds_to_tf32 = false;
  bool sums_backwards = false;  ///< from the last element on
  uint32_t epilogue = kPlain;
  int bias_type = kF32;
  void* bias = nullptr;
  float alpha = 1, beta = 0;
  const void *a_data = nullptr, *b_data = nullptr, *c_data = nullptr;
  void* d_data = nullptr;
};
void multiply(const MatrixProduct& product);

}  // namespace fake
