// The states of delayed scaling in a program that pass fp8 quantises (ops/fp8_scaling.h): what the program
// measures goes into the history, and what a step does last moves history and scales on.
#pragma once

#include <map>

#include "passes/training/fp8.h"

namespace plimsoll::passes {

/// Appends what a step does last with delayed scaling: both states move on. `history` has the step's first
/// row; `scales` are as the program read them.
void append_next_scales(ir::Builder& b, const Fp8Settings& fp8, ir::ValueId history, ir::ValueId scales);

/// Appends that the largest magnitudes of the program's operands, by slot, go into the history's first row;
/// in a program that ends the step the states move on.
Status append_magnitudes(ir::Graph& graph, const Fp8Settings& fp8,
                         const std::map<int64_t, ir::ValueId>& magnitudes, ir::ValueId scales);

}  // namespace plimsoll::passes
