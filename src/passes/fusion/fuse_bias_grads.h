// The gradient of a bias beside its weight's, for devices whose products sum the rows of an operand that they
// read anyway.
//
//   x ──► linear_dw ──► dw                     x ──► linear_dw_db ─┬► dw
//   dy ─┬►                         ==>         dy ─►               └► db
//       └─► sum_rows ──► db
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseBiasGradsOptions {
  std::span<const ir::ValueId> keep = {};
};
struct FuseBiasGradsReport {
  Replaced replaced = {};
  size_t fused = 0;
};

/// linear_dw(x, dy, acc?) and a later sum_rows(dy, bias_acc?) -> linear_dw_db. A bias's accumulator is read
/// in front of both. The sum's order is the device's, so that it is always fused or never.
Result<FuseBiasGradsReport> fuse_bias_grads(ir::Graph& graph, const FuseBiasGradsOptions& options = {});

}  // namespace plimsoll::passes
