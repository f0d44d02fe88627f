// Arguments of update rules that look beyond one element (ops/tensor_rules.h): the tensor and its step.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// A tensor, or a part of one. Results lie where their operands do.
struct TensorStep {
  Operand param, grad, copy;     ///< copy: the parameter's, where there is to be one
  const float* clip = nullptr;   ///< no number: the step is skipped, and the copy is made all the same
  const float* group = nullptr;  ///< the group's row of the table
  const u32* random = nullptr;   ///< null: results are rounded to nearest
  i64 n = 0;
  i64 first = 0;  ///< of the tensor that the draws count in: the number of element 0
  u32 key = 0;
  int is_shared = 0;   ///< by ranks: random has words of this one
  int rounded = kF32;  ///< the dtype that gradients are rounded to before anything else
};

}  // namespace plimsoll::cuda
