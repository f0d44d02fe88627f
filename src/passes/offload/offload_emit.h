// Rewrites a program with the copies that `offload` has decided on.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "passes/offload/offload.h"
#include "passes/offload/offload_items.h"

namespace plimsoll::passes {

struct OffloadedGraph {
  ir::Graph graph;
  std::vector<ir::ValueId> replaced;  ///< by old value; invalid where nothing stands for it
};

/// Views of what is loaded are made anew for each load; a state is read where its first load begins.
OffloadedGraph emit_offloaded(const ir::Graph& graph, const OffloadOptions& options,
                              const OffloadItems& items);

}  // namespace plimsoll::passes
