// The head's matrix and the loss in one op, so that the logits of a few tokens at a time exist and no more.
//
//   x ─► linear ─► logits ─► cross_entropy ─► loss    ==>    x, weight ─► head_loss ─► loss, dx, dw
#pragma once

#include <span>
#include <string>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseHeadLossOptions {
  std::span<const ir::ValueId> keep = {};
  bool grad = true;  ///< compute dx and dw in the same op
  /// Parameters that do not learn: without dw where the head is one, without dx where all below it are.
  std::span<const std::string> frozen = {};
  int64_t chunk_tokens = 256;  ///< logits that exist at once; a multiple of ops::kLossRows, rounded up to
                               ///< granules where there is dw
};
struct FuseHeadLossReport {
  Replaced replaced = {};
  size_t fused = 0;
};

/// linear without bias + cross_entropy -> head_loss or head_loss_dw, where nothing else needs logits or lse.
/// The same bits. Errors: kInvalidArgument where chunk_tokens is no positive multiple of ops::kLossRows.
Result<FuseHeadLossReport> fuse_head_loss(ir::Graph& graph, const FuseHeadLossOptions& options = {});

}  // namespace plimsoll::passes
