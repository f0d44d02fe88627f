// Joins neighbouring expressions into one, so that what lies between them never crosses memory.
//
//   x, y ─► pointwise sub(x0,x1) ─► pointwise mul(x0,x0) ─► z
//   ==>
//   x, y ─► pointwise t0=sub(x0,x1);mul(t0,t0) ─► z
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FusePointwiseOptions {
  std::span<const ir::ValueId> keep = {};
};
struct FusePointwiseReport {
  Replaced replaced = {};
  size_t fused = 0;
};

/// `pointwise` into `pointwise`, and `add`, `mul` and `silu` into or from one, where the value in between has
/// the result's shape and no other use, both belong to one block, and the expression stays within eight
/// operands and 64 parts, so that its derivative is one expression too. The same bits in f32; a shorter value
/// in between is no longer rounded. Linear time.
Result<FusePointwiseReport> fuse_pointwise(ir::Graph& graph, const FusePointwiseOptions& options = {});

}  // namespace plimsoll::passes
