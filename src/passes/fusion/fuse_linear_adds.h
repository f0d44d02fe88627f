// A gradient that two maps have a part in, a base and its adapter say, is one tensor: the product of few
// terms is added to the large one in place.
//
//   a ─► linear ─┐                             b ─► linear ─┐
//                ├─► add ─► dx      ==>                     ├─► linear_add ─► dx
//   b ─► linear ─┘                                       a ─┘
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseLinearAddsOptions {
  std::span<const ir::ValueId> keep = {};
};
struct FuseLinearAddsReport {
  Replaced replaced = {};
  size_t fused = 0;
};

/// total + linear(x, weight) -> linear_add(x, weight, total), where neither has another use, total is a value
/// of this program with a storage of its own, all are of one dtype, and the product has no bias and at most
/// 256 terms: it moves more than it computes. The same bits.
Result<FuseLinearAddsReport> fuse_linear_adds(ir::Graph& graph, const FuseLinearAddsOptions& options = {});

}  // namespace plimsoll::passes
