// A norm's input gradient and its addition to the residual stream's gradient in one op.
//
//   dy ─► rms_norm_grad ─► dx ─► add ─► d_sum      ==>   dy, d_residual ─► rms_norm_grad_add ─► d_sum, dw
//                            d_residual ─┘
//
// and the sum of the cotangents of a residual block's result in the gradient of the batch norm that gave it:
//
//   d_block, d_skip ─► add ─► dy ─► batch_norm_add_grad      ==>   d_block, d_skip ─► batch_norm_add_grad
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

/// rms_norm_grad + add -> rms_norm_grad_add, layer_norm_grad + add -> layer_norm_grad_add, add +
/// batch_norm_add_grad -> batch_norm_add_grad with dy2. The same bits.
Result<FuseNormGradsReport> fuse_norm_grads(ir::Graph& graph, const FuseNormGradsOptions& options = {});

}  // namespace plimsoll::passes
