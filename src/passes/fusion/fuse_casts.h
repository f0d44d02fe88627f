// Values that products round are rounded where they are computed, for devices whose products do it in a pass
// of its own each time.
//
//   rms_norm_grad_add ─► dx (f32) ─┬► linear {bf16}       rms_norm_grad_add {rounded} ─┬► dx (f32) ─► …
//                                  ├► linear_dw {bf16} ==>                             └► dx (bf16) ─┬►
//                                  linear └► … └► linear_dw
//
// Which ops can: those with attribute `rounded` (ops/rounded_copy.h).
#pragma once

#include "passes/fusion/rounding_readers.h"
#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseCastsReport {
  Replaced replaced = {};
  size_t copied = 0;     ///< values that their op writes twice
  size_t shortened = 0;  ///< values that are stored rounded alone
};

/// The copy is for the readers that round to the dtype to which the first of them does, and are of its block,
/// on the value's side of the loss. Where all readers round to one dtype and the op stores its result so,
/// that is all that it stores. A cast is such a reader, and is gone. The same bits. Linear time.
Result<FuseCastsReport> fuse_casts(ir::Graph& graph, const RoundingOptions& options = {});

}  // namespace plimsoll::passes
