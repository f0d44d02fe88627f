// Gradient accumulation over micro-batches: a reduction continues where that of the last micro-batch stopped.
//
//   first:  x, dy ─► linear_dw ─► state_assign "g"         later:  state "g" ─► linear_dw (acc) ─►
//   state_assign "g"
//
// Not an addition after the fact: ((acc + g1) + g2) differs from acc + (g1 + g2), and results must not
// depend on the split of the effective batch. The families' parameters are all used by ops that can go on so;
// of a model of one's own, whose parameters may be used by any op, those that cannot are added.
//
// With accumulators of bf16 results do depend on the split: each micro-batch's gradient is rounded onto its
// accumulator, where it is complete:
//
//   x, dy ─► linear_dw ─► accumulate (state "g", drawn) ─► state_assign "g"
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

struct Accumulation {
  ir::ValueId contribution = {};
  std::string state = {};  ///< the accumulator, declared, of the contribution's type or of bf16
  bool first = true;       ///< assigns; else continues from what the state holds
  /// The declared i32[4] that draws are keyed by, and their key, where the accumulator is bf16; else empty.
  std::string random = {};
  int64_t key = 0;
};

/// Gives each contribution's op its accumulator and assigns the result; later uses see the accumulated value.
/// Where the op has no operand for an accumulator (a view, an activation's gradient), or needed ops read the
/// contribution itself, the contribution is added to the accumulator behind it. Errors: kInvalidArgument
/// where the state does not fit.
Status accumulate(ir::Graph& graph, std::span<const Accumulation> accumulations);

}  // namespace plimsoll::passes
