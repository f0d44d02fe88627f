// The dependencies between ops: operands, and the order of reads and writes of each storage.
#pragma once

#include <cstddef>

#include "base/lists.h"
#include "ir/graph.h"

namespace plimsoll::passes {

/// By place in the order: the places that must come before, and those that must come after. Each pair once.
struct Dependencies {
  Lists<size_t> before, after;
};

/// Operands come before their users. Of the ops that touch one storage (a state, or a value and its views),
/// writes - consuming it, assigning the state, making the value that becomes the state's - keep their order
/// against all others; reads may change places among themselves. Linear in operands.
Dependencies dependencies(const ir::Graph& graph);

}  // namespace plimsoll::passes
