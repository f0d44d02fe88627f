// Readers of a value that round it to a shorter dtype anyway: what passes ask that store it in that at once.
#pragma once

#include <optional>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::passes {

/// What `op` rounds its operand `v` to, if that is a dtype values are stored in, and nothing of it reads v
/// otherwise.
std::optional<ir::DType> rounds_to(const ir::Op& op, ir::ValueId v);
/// Results of the reader that follow `v` stay of the dtype that they have.
void hold_results(ir::Graph& graph, ir::OpId id, ir::ValueId v);

}  // namespace plimsoll::passes
