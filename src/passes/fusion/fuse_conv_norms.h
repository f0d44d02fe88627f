// Fuses a convolution with the batch norm of its result, or with the statistics of that norm, so that they
// are computed while the result lies in the caches. Statistics are
//
//   of the batch   conv2d ─► y ─► batch_statistics ─► mean, variance   ==>   conv2d_statistics
//   given          conv2d ─► batch_norm [+ residual] [relu] ─► y       ==>   conv2d_batch_norm
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

/// Fuses convolutions without a bias. The second form needs a norm that alone reads the convolution and has
/// its dtype: in evaluation, and in training where no gradient goes through the norm. Runs after recompute,
/// which clones convolutions but never statistics. Results are bit-identical. Linear time.
Result<FuseConvNormsReport> fuse_conv_norms(ir::Graph& graph, const FuseConvNormsOptions& options = {});

}  // namespace plimsoll::passes
