// Gradient accumulation over micro-batches: a reduction continues where that of the last micro-batch stopped.
//
//   first:  x, dy ─► linear_dw ─► state_assign "g"         later:  state "g" ─► linear_dw (acc) ─►
//   state_assign "g"
//
// Not an addition after the fact: ((acc + g1) + g2) differs from acc + (g1 + g2), and results must not
// depend on the split of the effective batch.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

struct Accumulation {
  ir::ValueId contribution = {};  ///< a result of an op with an acc operand for it
  std::string state = {};         ///< the accumulator, declared, of the contribution's type
  bool first = true;              ///< assigns; else continues from what the state holds
};

/// Gives each contribution's op its accumulator and assigns the result. Later uses see the accumulated value.
/// Errors: kInvalidArgument where the op cannot accumulate that result (a view, a sum) or the state does not
/// fit.
Status accumulate(ir::Graph& graph, std::span<const Accumulation> accumulations);

}  // namespace plimsoll::passes
