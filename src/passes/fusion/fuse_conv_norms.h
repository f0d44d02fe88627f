// Batch normalisation beside the convolution that it stands behind, while the result lies in the caches.
//
//   taken of a batch:   conv2d ─► y ─► batch_statistics ─► mean, variance    ==>   conv2d_statistics ─► y,
//   mean, variance given statistics:   conv2d ─► batch_norm [+ residual] [relu] ─► y        ==>
//   conv2d_batch_norm ─► y
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseConvNormsOptions {
  std::span<const ir::ValueId> keep = {};
};
struct FuseConvNormsReport {
  Replaced replaced = {};
  size_t fused = 0;
};

/// Convolutions without a bias. The second form where the norm alone reads the convolution and has its dtype:
/// in evaluation, and in training where no gradient goes through the norm. Behind recompute, which clones
/// convolutions but never statistics. The same bits. Linear time.
Result<FuseConvNormsReport> fuse_conv_norms(ir::Graph& graph, const FuseConvNormsOptions& options = {});

}  // namespace plimsoll::passes
