// Takes out the ops whose results nobody needs.
#pragma once

#include <span>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

struct DeadCodeOptions {
  std::span<const ir::ValueId> keep = {};  ///< values wanted beside those that ops with an effect use
};
struct DeadCodeReport {
  size_t removed = 0;
};

/// Keeps the ops with an effect, the producers of `keep`, and what these need. Linear time.
Result<DeadCodeReport> dead_code(ir::Graph& graph, const DeadCodeOptions& options);

/// Ops that passes took out of the order let go of operands, attributes and layer, which copies of the graph
/// would copy too. No value that is wanted may be theirs.
void empty_removed_ops(ir::Graph& graph);

}  // namespace plimsoll::passes
