// Arguments of the kernels for update rules that read whole tensors (ops/tensor_rules.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernel.h"
#include "ops/philox.h"
#include "ops/tensor_rules.h"

namespace plimsoll::cpu {

/// A tensor's update: operands by their place in the op, the group's row of the table. A clip that is not a
/// number skips it.
struct TensorUpdateCall {
  explicit TensorUpdateCall(const KernelCall& call);

  ops::TensorForm form;
  const TensorRef &param, &grad, &new_param;
  const TensorRef* copy;  ///< null: none
  std::span<const TensorRef> states, new_states;
  float clip;
  const float* group;
  bool is_skipped;
  ops::RandomStream stream = {};  ///< where the form draws
  ir::DType rounded;              ///< of the gradient; f32: as it comes

  /// A skipped step: what does not lie where it lay is copied, and the parameter's copy is made.
  void keep(ThreadPool& pool) const;
};

/// One element range of a parameter: p = p * decay - step, stored, drawn for and copied as the op says.
/// Any range; `step` holds n values.
void step_param(const TensorUpdateCall& call, int64_t first, int64_t n, float decay, const float* step);
/// n values of state `s`, of whichever floating dtype, as f32.
void load_state(const TensorUpdateCall& call, size_t s, int64_t first, int64_t n, float* values);
/// Values of a state, stored and drawn for as the op says; Any range.
void store_state(const TensorUpdateCall& call, size_t s, int64_t first, int64_t n, const float* values);
/// n values of the clipped gradient, from element `first` on.
void load_gradient(const TensorUpdateCall& call, int64_t first, int64_t n, float* values);
/// n values of the parameter as f32.
void load_param(const TensorUpdateCall& call, int64_t first, int64_t n, float* values);

}  // namespace plimsoll::cpu
