// Arguments of norm_codes.cu.
#pragma once

#include "backends/cuda/kernels/gemm/quantize_operand_args.h"
#include "backends/cuda/kernels/norm/norm_args.h"

namespace plimsoll::cuda {

/// A copy of what a norm computes, which is stored nowhere.
struct NormCodes {
  NormRows norm;
  int dtype = 0;  ///< what it is stored as where it is stored
  QuantizeOperand plain;
  u32* largest = nullptr;  ///< of each row, as OperandAmax; null: not wanted
};

inline constexpr DeviceKernel<NormCodes> kNormCodes{"gemm/norm_codes", "norm_codes"};

}  // namespace plimsoll::cuda
