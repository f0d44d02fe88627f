// Gives the gradients of parameters their dtype: each is made in it by the op that computes it, in one
// rounding of its f32 sum, and what adds several of them follows.
//
//   linear_dw(x, dy) : f32[5,4]     ==>     linear_dw(x, dy) {out="bf16"} : bf16[5,4]
#pragma once

#include <span>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

/// Right behind autodiff: `gradients` are its contributions, the results of ops with an attribute `out` or
/// `dw`, or such results side by side (`concat`). Those that have the dtype already are left alone. Errors:
/// kInternal for one that no such op makes.
Status store_gradients(ir::Graph& graph, std::span<const ir::ValueId> gradients, ir::DType dtype);

}  // namespace plimsoll::passes
