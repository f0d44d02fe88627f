// Attention straight from the packed projection: no split, no copies of q, k and v, rotation in place.
//
//   qkv ─► split ─► reshape ─► rope ─► q ─┐
//            ├────► reshape ─► rope ─► k ─┼─► attention     qkv ─► rope_packed ─► attention_packed
//            └────► reshape ─────────► v ─┘            ==>
//
// Where an rms_norm of each head stands before the rotations of q and k, qk_norm_rope takes rope_packed's
// place.
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseAttentionOptions {
  std::span<const ir::ValueId> keep = {};
};
struct FuseAttentionReport {
  Replaced replaced = {};
  size_t fused = 0;
};

/// With one table on q and k, or without rotation; with norms on both, or on none. Where the values in
/// between have no other use. The same bits. Linear time.
Result<FuseAttentionReport> fuse_attention(ir::Graph& graph, const FuseAttentionOptions& options = {});

}  // namespace plimsoll::passes
