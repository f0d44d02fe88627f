// Operands that several products round are rounded once, for devices whose products do it in a pass of its
// own each time.
//
//   x (f32) ─┬► linear {bf16}                  x ─► cast ─┬► linear {bf16}
//            └► linear_dw {bf16}       ==>                └► linear_dw {bf16}
#pragma once

#include "passes/fusion/rounding_readers.h"
#include "passes/rewriter.h"

namespace plimsoll::passes {

struct ShareCastsReport {
  Replaced replaced = {};
  size_t shared = 0;
};

/// A value of f32, of an op that is neither a state's read nor a view, gets one cast for the two or more of
/// its readers that are of one block and direction and round it to the same dtype; it takes the place of
/// their scratch. The same bits.
Result<ShareCastsReport> share_casts(ir::Graph& graph, const RoundingOptions& options = {});

}  // namespace plimsoll::passes
