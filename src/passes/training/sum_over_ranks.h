// Sums over the ranks of a data parallel run, behind the last micro-batch and before norm, clip and update:
//
//   %2 = exchange(%1) {ranks=4}            this rank's piece of every rank's gradient
//   %3 = sum_ranks(%2)                     in the order of ranks
//   %4 = all_gather(%3, %1) {ranks=4}      the whole sum, where the gradient lies
//   %4 = put_piece(%3, %1) {ranks=4}       or this rank's piece of it, where ranks share the update
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/builder.h"

namespace plimsoll::passes {

/// The sums of `gradients` over `ranks` in their order, written over them; a gradient that is a state's value
/// is assigned to that state. Tensors that are too small to have a piece for each rank are gathered whole. Of
/// those that `pieces` says each rank has the sum of its own piece alone, the rest is undefined; empty: none.
std::vector<ir::ValueId> sum_over_ranks(ir::Builder& b, const std::vector<ir::ValueId>& gradients,
                                        int64_t ranks, const std::vector<bool>& pieces = {});

/// The same of a state, which holds the sum from here on.
void sum_state_over_ranks(ir::Builder& b, std::string_view state, int64_t ranks);

/// The largest of f32 `x` over `ranks`, element by element, for a state of which `x` is the value; no NaN.
ir::ValueId max_over_ranks(ir::Builder& b, ir::ValueId x, int64_t ranks);

/// The mean of a state's values over `ranks`, which it holds from here on.
ir::ValueId average_state_over_ranks(ir::Builder& b, std::string_view state, int64_t ranks);

}  // namespace plimsoll::passes
