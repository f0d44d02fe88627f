// The states of delayed scaling in a program that pass fp8 quantises (ops/fp8_scaling.h): the history
// takes the amax values that the program measures; the end of a step computes the next scales and rolls it.
#pragma once

#include "passes/training/fp8.h"
#include "passes/training/fp8_operands.h"

namespace plimsoll::passes {

/// Appends the end of a step with delayed scaling: the next scales, and the history rolled by one row.
/// `history` holds the step's first row; `scales` are those that the program read.
void append_next_scales(ir::Builder& b, const Fp8Settings& fp8, ir::ValueId history, ir::ValueId scales);

/// Appends the ops that write the amax values of the program's operands, by slot, to the history's first row;
/// in a program that ends the step, append_next_scales as well.
Status append_magnitudes(ir::Graph& graph, const Fp8Settings& fp8, const SlotMagnitudes& magnitudes,
                         ir::ValueId scales);

}  // namespace plimsoll::passes
