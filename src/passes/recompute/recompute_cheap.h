// Rebuilds in backward what costs next to nothing to rebuild, instead of keeping it from forward until there.
//
//   forward   sum ─► rms_norm ─► y ─► linear            sum and rstd are kept anyway, for rms_norm_grad
//   backward  sum ─► rms_norm ─► y' ─► linear_dw        y' lives here alone
//
// and keeps, instead of a result, an operand that is smaller and gives the result again:
//
//   forward   sum f32 + branch bf16 ─► next sum f32     sum and branch are kept, not the next sum
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct RecomputeCheapOptions {
  /// The last op of forward, which gives the loss; uses behind it are backward's.
  ir::OpId last_forward_op = {};
  std::span<const ir::ValueId> keep = {};
};
struct RecomputeCheapReport {
  size_t recomputed = 0;  ///< values
  Bytes saved = {};       ///< no longer kept across the end of forward
};

/// A value is rebuilt, right before its first use in backward, where its op is RecomputeClass::kNearlyFree
/// and cheap for its size, and every operand of the rebuilt op is there at that point anyway: a state, kept
/// for a later op of backward, or rebuilt itself; or all but one, which is smaller than the value and is kept
/// in its stead. So kept bytes only fall and no GEMM runs twice. Small results that stand beside a large one
/// (rstd) stay kept. The clones are marked `recomputed`; the same bits.
Result<RecomputeCheapReport> recompute_cheap(ir::Graph& graph, const RecomputeCheapOptions& options);

}  // namespace plimsoll::passes
