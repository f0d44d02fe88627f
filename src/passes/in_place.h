// Decides which results take the place of an operand that nobody needs any more.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::passes {

struct InPlaceOptions {
  std::span<const ir::ValueId> keep = {};  ///< values that must still be there when the program ends
};
struct InPlaceReport {
  std::vector<std::pair<ir::OpId, ir::Alias>> aliases = {};  ///< in the order of the program
  Bytes bytes = {};                                          ///< of results that need no storage of their own
};

/// Of each op's `in_place` aliases takes those where the operand's storage is an arena value of the same size, seen
/// through dense views alone, and has no later use; one result a storage, and no storage that the op also reads as
/// another operand or consumes. The graph stays as it is: aliases are for who binds storages, and hold for this order.
Result<InPlaceReport> in_place(ir::Graph& graph, const InPlaceOptions& options = {});

}  // namespace plimsoll::passes
