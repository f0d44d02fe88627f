// Ops that are quantised in the kernel that computes them: SwiGLU and its gradient, and norms that one copy
// is made of.
#pragma once

#include "backends/cuda/kernels/gemm/quantize_operand.h"
#include "ops/fused_quantize.h"

namespace plimsoll::cuda {

/// What an op computes, and the copies of it.
struct ComputedCopies {
  const ops::FusedQuantize& fused;
  ir::TensorType y;
  QuantizeForm form;  ///< of the only copy, else of the one that is not transposed
  bool both;

  ComputedCopies(const ops::FusedQuantize& op, const ir::Attrs& attrs, const ir::TensorType& type)
      : fused(op), y(type), form(attrs, type.shape, attrs.flag("transposed")), both(attrs.flag("both")) {}
  /// Whether there is a kernel for it: blocks of one row, or one given scale of what lies as it is computed.
  [[nodiscard]] bool have_a_kernel() const;
  /// Largest magnitudes that queue_computed_codes tells.
  [[nodiscard]] int64_t num_magnitudes() const;
};

/// Queues that kernel. `to`: codes and scales of the copies; plain's are those of the only one. `largest`:
/// null where they are not wanted.
Status queue_computed_codes(const KernelCall& call, const ComputedCopies& copies, const QuantizeBoth& to,
                            u32* largest, Stream& stream);

}  // namespace plimsoll::cuda
