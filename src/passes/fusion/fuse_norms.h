// Fuses residual addition and the norm that follows it into one memory-bound op.
//
//   x ──► add ──► sum ──► rms_norm ──► y            x ──► add_rms_norm ──► sum, y, rstd
//   r ──┘          └────► (next residual)     ==>   r ──┘
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseNormsOptions {
  std::span<const ir::ValueId> keep = {};
};
struct FuseNormsReport {
  Replaced replaced = {};
  size_t fused = 0;
};

/// add + rms_norm -> add_rms_norm, add + layer_norm -> add_layer_norm, where nothing needs the sum before the
/// norm. The same bits. Linear time.
Result<FuseNormsReport> fuse_norms(ir::Graph& graph, const FuseNormsOptions& options = {});

}  // namespace plimsoll::passes
