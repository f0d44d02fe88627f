// Decides which results take the place of an operand that nobody needs any more.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::passes {

struct StorageGroups;

struct InPlaceOptions {
  std::span<const ir::ValueId> keep = {};  ///< values that must still be there when the program ends
};
struct InPlaceReport {
  std::vector<std::pair<ir::OpId, ir::Alias>> aliases = {};  ///< in the order of the program
  Bytes bytes = {};                                          ///< of results that need no storage of their own
};

/// Of each op's `in_place` aliases takes the first where the operand's storage is an arena value of the same
/// space and size, covered by the operand as a whole, and has no later use. Not where the op reads that
/// storage through another operand too, nor where the result or the operand becomes a state's value: that
/// lies in the state's storage. The graph stays as it is: the aliases are for who binds storages, and hold
/// for this order.
Result<InPlaceReport> in_place(ir::Graph& graph, const InPlaceOptions& options = {});

/// The same along any order of the graph's ops, whose groups are `groups`.
InPlaceReport in_place_along(const ir::Graph& graph, std::span<const ir::OpId> order,
                             const StorageGroups& groups);

}  // namespace plimsoll::passes
