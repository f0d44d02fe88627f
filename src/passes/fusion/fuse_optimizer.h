// The whole optimizer in two ops: the squares of all gradients, then every update of
// one rule (AdamW here).
//
//   g0 ─► sum_squares ─┐                                  g0, g1, … ─► sum_squares_sweep ─► global_norm
//   g1 ─► sum_squares ─┼─► global_norm ─► clip      ==>                                       │
//   p0, g0, m0, v0 ─► adamw ◄── clip                      p0, g0, m0, v0, p1, … ─► adamw_sweep ◄ clip
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseOptimizerOptions {
  std::span<const ir::ValueId> keep = {};
  bool updates = true;  ///< false: the squares alone
};
struct FuseOptimizerReport {
  Replaced replaced = {};
  size_t fused_squares = 0;  ///< sum_squares ops that are gone
  size_t fused_updates = 0;  ///< updates of one tensor that are gone
};

/// Updates are joined only where all their gradients exist before the first of them, so that nothing lives
/// longer: an optimizer spread over backward stays as it is. The assignments of their results move along. The
/// same bits.
Result<FuseOptimizerReport> fuse_optimizer(ir::Graph& graph, const FuseOptimizerOptions& options = {});

}  // namespace plimsoll::passes
