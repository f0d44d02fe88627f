// Shared code of linear layers and the fused loss head: operands of the GEMM in their stored dtypes.
#pragma once

#include <span>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {

/// Rows of a tensor over its last axis, in its dtype; `stride` in elements.
struct StoredRows {
  std::byte* data = nullptr;
  ir::DType dtype = ir::DType::kF32;
  int64_t rows = 0, cols = 0, stride = 0;
  [[nodiscard]] std::byte* row(int64_t i) const { return data + i * stride * ir::bits(dtype) / 8; }
  [[nodiscard]] StoredRows from(int64_t begin, int64_t count) const {
    return {row(begin), dtype, count, cols, stride};
  }
};
StoredRows stored_rows(const TensorRef& ref);

using ops::precision_of;

/// The right operand [in, out] of x · W from a weight [out, in], or [in, out] where `transposed`.
ConstMatrix weight_as_b(const TensorRef& weight, bool transposed);

/// dw [out, in] = dy^T x, or [in, out] = x^T dy where `transposed`; rows are tokens, `segment` of them a
/// sequence. With `accumulate` (an f32 dw) added to what is there.
struct WeightGradient {
  StoredRows x = {}, dy = {};
  void* dw = nullptr;
  ir::DType dw_dtype = ir::DType::kF32;
  bool transposed = false;
  int64_t segment = 0;
  bool accumulate = false;
  Precision precision = Precision::kF32;
};
/// Workspace: gemm_workspace_bytes of dw's extents over x.rows, for its dtype and precision.
void weight_gradient(const WeightGradient& g, ThreadPool& pool, std::span<std::byte> workspace);

}  // namespace plimsoll::cpu
