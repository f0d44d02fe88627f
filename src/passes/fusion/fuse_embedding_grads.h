// A tied table's two gradients meet in place: only the rows of the batch's tokens are touched.
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseEmbeddingGradsOptions {
  std::span<const ir::ValueId> keep = {};
};
struct FuseEmbeddingGradsReport {
  Replaced replaced = {};
  size_t fused = 0;
};

/// total + embedding_grad(dy, ids) -> embedding_grad_add(total, dy, ids), which consumes total; where neither
/// has another use and total is a value of this program with a storage of its own. The same bits.
Result<FuseEmbeddingGradsReport> fuse_embedding_grads(ir::Graph& graph,
                                                      const FuseEmbeddingGradsOptions& options = {});

}  // namespace plimsoll::passes
