// Update rules that look beyond one element (ops/tensor_rules.h): operands put into terms of TensorStep.
#pragma once

#include <span>

#include "backends/cuda/kernels/operands.h"
#include "backends/cuda/kernels/optimizer/tensor_update_args.h"
#include "ops/tensor_rules.h"

namespace plimsoll::cuda {

struct TensorUpdate {
  ops::TensorForm form;
  TensorStep step;                    ///< of the whole tensor
  std::span<const TensorRef> states;  ///< the results

  /// The n elements from `first` on: a tensor for themselves.
  [[nodiscard]] TensorStep part(int64_t first, int64_t n) const;
};

/// What does not lie where it is to be is copied there first. Async.
Result<TensorUpdate> tensor_update(const KernelCall& call, Stream& stream);

/// Elements of an operand from `first` on; an absent one stays absent.
Operand from_element(const Operand& x, int64_t first);

}  // namespace plimsoll::cuda
