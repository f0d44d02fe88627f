// Keeps the operands of the linear layers of a program's blocks for a dump: input, weight and the result's
// gradient, each in a state of class kOutput, "t.<module>.<x|w|dy>", as they are stored where they enter the
// product. Behind autodiff, and before pass fp8 quantises them; results are bit-identical.
#pragma once

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

/// Appends the states' assignments. Programs without backward (no last op of forward) stay as they are.
Status keep_operands(ir::Graph& graph, ir::OpId last_forward_op);

}  // namespace plimsoll::passes
