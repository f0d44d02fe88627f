// Recomputes in backward what a program does not keep of its forward part.
//
//   forward   x ─► linear ─► attention ─► linear ─► +x ─► norm ─► linear ─► …       x is kept
//   backward  x ─► linear' ─► attention' ─► … each before its first use; its clones live in that block's
//             backward alone, but for those of a round, which are held for blocks further back
//
// What comes back nearly for nothing is recompute_cheap's, which runs afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "passes/rewriter.h"

namespace plimsoll::passes {

/// Values that are made again together, as backward of a block begins, and stay until their last use.
struct RecomputeRound {
  int32_t block = ir::kNoBlock;
  std::vector<ir::ValueId> hold = {};
};

struct RecomputeOptions {
  /// The last op of forward, which gives the loss; uses behind it are backward's.
  ir::OpId last_forward_op = {};
  std::span<const ir::ValueId> keep = {};
  /// Values of forward, owners of their storage, that are not kept for backward.
  std::vector<ir::ValueId> dropped = {};
  std::vector<RecomputeRound> rounds = {};  ///< at most one a block
};
struct RecomputeReport {
  size_t clones = 0;  ///< ops
};

/// Every use behind forward of a dropped value becomes that of a clone, which stands before the first op that
/// asks for it; the clones' operands are kept values, states, and clones. A clone serves the backward of one
/// block, a held one all that follow. What cannot be computed again (RecomputeClass::kNever, consumed
/// storages, states that have changed) is kept all the same. Random ops draw by key, so a clone draws the
/// same. The clones are marked `recomputed`; the same bits.
Result<RecomputeReport> recompute(ir::Graph& graph, const RecomputeOptions& options);

}  // namespace plimsoll::passes
