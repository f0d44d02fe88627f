// What linear maps and the fused head share.
#pragma once

#include <span>

#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {

/// The right operand [in, out] of x · W from a weight [out, in], or [in, out] where `transposed`.
ConstMatrix weight_as_b(const TensorRef& weight, bool transposed);

/// dw [out, in] = dy^T x, or [in, out] = x^T dy where `transposed`; rows are tokens, `segment` of them a
/// sequence. With `accumulate` added to what is there, granule by granule.
struct WeightGradient {
  RowsOf<const float> x = {}, dy = {};
  float* dw = nullptr;
  bool transposed = false;
  int64_t segment = 0;
  bool accumulate = false;
};
/// Workspace: gemm_workspace_bytes of dw's extents over x.rows.
void weight_gradient(const WeightGradient& g, ThreadPool& pool, std::span<std::byte> workspace);

}  // namespace plimsoll::cpu
