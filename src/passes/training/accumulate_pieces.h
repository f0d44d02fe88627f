// Gradient accumulation where each rank has a piece of the accumulators (ZeRO-2): a gradient is summed over
// the ranks as soon as it is complete, and freed after that.
//
//   x, dy ─► linear_dw ─► exchange ─► sum_ranks ─► state_assign "g"                  the first micro-batch
//                                     sum_ranks ─► add(state "g") ─► state_assign "g"           later ones
//
// The sum over ranks of each micro-batch is added to those before it: with several micro-batches results
// depend on the split.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

struct PieceAccumulation {
  ir::ValueId gradient = {};  ///< f32, of all uses
  std::string state = {};     ///< the accumulator, declared as a piece
  bool first = true;          ///< assigns; else adds to what the state holds
};

/// Errors: kInvalidArgument where a state is not declared as a piece of its gradient.
Status accumulate_pieces(ir::Graph& graph, std::span<const PieceAccumulation> accumulations, int64_t ranks);

}  // namespace plimsoll::passes
