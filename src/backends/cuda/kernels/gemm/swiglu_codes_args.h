// Arguments of swiglu_codes.cu.
#pragma once

#include "backends/cuda/kernels/gemm/quantize_operand_args.h"

namespace plimsoll::cuda {

/// Copies of silu(gate) * up, of x in rows of 2 * cols, gate then up; or with dy [rows, cols] of the gradient
/// of x: one, `plain` or `turned`, or both. Their sources tell the matrix, and have no x.
struct SwigluCodes {
  Operand dy, x;
  i64 cols = 0;
  int dtype = 0;  ///< what the result is stored as where it is stored
  QuantizeOperand plain, turned;
  u32* largest = nullptr;  ///< as OperandAmax, of `plain` alone; null: not wanted
};

inline constexpr DeviceKernel<SwigluCodes> kSwigluCodes{"gemm/swiglu_codes", "swiglu_codes"};
inline constexpr DeviceKernel<SwigluCodes> kSwigluCodesTurned{"gemm/swiglu_codes", "swiglu_codes_turned"};
inline constexpr DeviceKernel<SwigluCodes> kSwigluCodesBoth{"gemm/swiglu_codes", "swiglu_codes_both"};
inline constexpr DeviceKernel<SwigluCodes> kSwigluGradCodes{"gemm/swiglu_codes", "swiglu_grad_codes"};
inline constexpr DeviceKernel<SwigluCodes> kSwigluGradCodesTurned{"gemm/swiglu_codes",
                                                                  "swiglu_grad_codes_turned"};
inline constexpr DeviceKernel<SwigluCodes> kSwigluGradCodesBoth{"gemm/swiglu_codes",
                                                                "swiglu_grad_codes_both"};

}  // namespace plimsoll::cuda
