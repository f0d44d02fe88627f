// Quantises each weight once a step: the program of the first micro-batch keeps codes and scales in states of
// the session, which the programs of the other micro-batches read.
//
//   first    w ─► quantize_operand ─┬► scaled_matmul, forward and backward
//                                   └► state "fp8.weight.<w>.codes", ".scales", ".amax"
//   others   states ─► scaled_matmul
//
// A weight changes at the end of a step alone, so the codes are those that each use would make for itself.
// Behind pass fp8. What recompute would make again lies in the states.
#pragma once

#include <span>

#include "passes/training/fp8.h"
#include "passes/training/weight_copies.h"

namespace plimsoll::passes {

struct Fp8WeightsOptions {
  std::span<const ir::ValueId> keep = {};
  WeightCopies copies = WeightCopies::kOwn;
};
struct Fp8WeightsReport {
  Replaced replaced = {};
  std::vector<Fp8Product> copies = {};  ///< as rows for people: product "weight", bytes in the note
};

/// Linear time. Programs without quantised weights, and kOwn, stay as they are.
Result<Fp8WeightsReport> fp8_weights(ir::Graph& graph, const Fp8WeightsOptions& options);

/// Whether it is a state that this pass declares.
bool is_fp8_weight(const ir::StateDecl& state);

}  // namespace plimsoll::passes
