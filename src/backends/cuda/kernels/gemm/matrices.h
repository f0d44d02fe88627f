// Operands of products: rounded to what a product takes, in scratch where they are stored otherwise.
#pragma once

#include "backends/cuda/kernels/operands.h"
#include "ops/rounding.h"

namespace plimsoll::cuda {

using ops::Precision;

/// Rows of one stride, as stored.
struct Matrix {
  std::byte* data = nullptr;
  ir::DType dtype = ir::DType::kF32;
  int64_t rows = 0, cols = 0, stride = 0;
  [[nodiscard]] Matrix from(int64_t row, int64_t count) const {
    return {data + row * stride * (ir::bits(dtype) / 8), dtype, count, cols, stride};
  }
};
/// Over the last axis.
inline Matrix matrix_of(const TensorRef& ref) {
  return {ref.data, ref.type.dtype, ref.shape().num_rows(), ref.shape().dim(-1), row_stride(ref)};
}
/// Dense rows of f32 in scratch.
inline Matrix f32_matrix(float* data, int64_t rows, int64_t cols) {
  return {reinterpret_cast<std::byte*>(data), ir::DType::kF32, rows, cols, cols};
}
inline Operand operand(const Matrix& matrix) { return operand_at(matrix.data, matrix.dtype); }

using ops::precision_of;

/// Whether an operand is to be written anew for products of that precision.
inline bool is_rounded_for(ir::DType dtype, Precision precision) {
  return dtype != ops::stored_dtype(precision) || precision == Precision::kTf32;
}
/// Bytes of scratch for it, 0 where it is taken as it is.
inline int64_t rounded_bytes(ir::DType dtype, int64_t elements, Precision precision) {
  return is_rounded_for(dtype, precision) ? elements * (ir::bits(ops::stored_dtype(precision)) / 8) : 0;
}
/// x as the products take it, in `scratch` where it is to be rounded. Async.
Result<Matrix> rounded_for(const Matrix& x, Precision precision, std::byte* scratch, Stream& stream);

/// d = op(a) op(b), as `multiply` queues it.
Product product_of(const Matrix& a, bool a_transposed, const Matrix& b, bool b_transposed, const Matrix& d,
                   bool adds, Precision precision, void* workspace);
/// d = op(a) op(b), see Product; a and b are rounded already. `d` is f32 or of their dtype.
Status multiply(const Matrix& a, bool a_transposed, const Matrix& b, bool b_transposed, const Matrix& d,
                bool adds, Precision precision, void* workspace, Stream& stream, const void* bias = nullptr);
/// Whether the card's matrix units take the product that the op's first two operands make. As
/// Kernel::accepts.
Status accepts_product(const ir::OpTypes& types, int capability);
/// Whether a product of that precision can be stored in that dtype at once.
inline bool is_direct(ir::DType out, Precision precision) {
  return out == ir::DType::kF32 || out == ops::stored_dtype(precision);
}

}  // namespace plimsoll::cuda
