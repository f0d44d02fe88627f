// Readers of a value that round it to a shorter dtype anyway: what passes ask that store it in that at once.
#pragma once

#include <optional>
#include <span>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::passes {

/// What `op` rounds its operand `v` to, if that is a dtype values are stored in, and nothing of it reads v
/// otherwise.
std::optional<ir::DType> rounds_to(const ir::Op& op, ir::ValueId v);
/// Of passes that round values once for their readers.
struct RoundingOptions {
  std::span<const ir::ValueId> keep = {};
  ir::OpId last_forward_op = {};  ///< invalid: a program without backward
};
/// Results of the reader that follow `v` stay of the dtype that they have.
void hold_results(ir::Graph& graph, ir::OpId id, ir::ValueId v);
/// Has the reader read `rounded` in the place of `v`; its results keep their dtypes.
void read_rounded(ir::Graph& graph, ir::OpId id, ir::ValueId v, ir::ValueId rounded);

}  // namespace plimsoll::passes
