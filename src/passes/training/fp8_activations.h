// Backward reads the inputs of norms and activations, whose results products take in FP8, from copies in FP8:
//
//   forward   up ─► silu ─► quantize_operand ─► scaled_matmul        up ─► quantize_operand ─► codes, scales
//   backward  codes, scales ─► dequantize_operand ─► up' ─► silu_grad
//                                                    up' ─► silu ─► quantize_operand ─► scaled_matmul (dw)
//
// So a byte a number is kept in place of two or four, and what products need of norms and activations is
// rebuilt from it. Forward computes with the values themselves. A copy has blocks of 1 x 128 whatever the
// recipe, so its numbers depend neither on the micro-batch nor on what is recomputed: behind pass fp8, and
// before recompute, which makes the same copies again.
#pragma once

#include <span>

#include "passes/training/fp8.h"

namespace plimsoll::passes {

struct Fp8ActivationsOptions {
  std::span<const ir::ValueId> keep = {};
  ir::OpId last_forward_op = {};
};
/// The copies of a program, as rows for people: product "kept", of which layer, bytes in the note.
struct Fp8ActivationsReport {
  Replaced replaced = {};
  std::vector<Fp8Product> copies = {};
};

/// Linear time. Programs without backward stay as they are.
Result<Fp8ActivationsReport> fp8_activations(ir::Graph& graph, const Fp8ActivationsOptions& options);

}  // namespace plimsoll::passes
