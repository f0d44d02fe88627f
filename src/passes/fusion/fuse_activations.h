// Fuses gated and biased activations into one memory-bound op.
//
//   gate_up ─► split ─► gate ─► silu ─► mul ─► y          gate_up ─► swiglu ─► y
//                 └───► up ─────────────┘           ==>
//   x ─► bias_add ─► gelu ─► y, x ─► linear + bias ─► gelu ─► y    ==>   ... ─► bias_gelu ─► y
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseActivationsOptions {
  std::span<const ir::ValueId> keep = {};
};
struct FuseActivationsReport {
  Replaced replaced = {};
  size_t fused = 0;
};

/// split + silu + mul -> swiglu; bias_add + gelu -> bias_gelu; linear with bias + gelu -> linear, bias_gelu
/// (a linear adds its bias after the last product, as bias_gelu does). Where the values in between have no
/// other use. The same bits. Linear time.
Result<FuseActivationsReport> fuse_activations(ir::Graph& graph, const FuseActivationsOptions& options = {});

}  // namespace plimsoll::passes
