// A norm's input gradient and its addition to the residual stream's gradient in one op.
//
//   dy ─► rms_norm_grad ─► dx ─► add ─► d_sum      ==>   dy, d_residual ─► rms_norm_grad_add ─► d_sum, dw
//                            d_residual ─┘
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseNormGradsOptions {
  std::span<const ir::ValueId> keep = {};
};
struct FuseNormGradsReport {
  Replaced replaced = {};
  size_t fused = 0;
};

/// rms_norm_grad + add -> rms_norm_grad_add, layer_norm_grad + add -> layer_norm_grad_add. The same bits.
Result<FuseNormGradsReport> fuse_norm_grads(ir::Graph& graph, const FuseNormGradsOptions& options = {});

}  // namespace plimsoll::passes
