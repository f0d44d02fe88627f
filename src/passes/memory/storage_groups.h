// Groups of values that share a storage, for passes that reason about lifetimes before storages are bound.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace plimsoll::passes {

/// The value whose storage `v` shows: itself, or what it is a view of.
ir::ValueId view_root(const ir::Graph& graph, ir::ValueId v);

/// Values of one content: a result, its views, and what is written over it by an op that consumes it.
struct StorageGroup {
  ir::ValueId owner;      ///< the value that made the storage
  bool is_state = false;  ///< read from a state: lives in the session
  bool assigned = false;  ///< becomes a state's value, so it can be written there from the start
  size_t last_use = 0;    ///< place in the order
};

struct StorageGroups {
  std::vector<StorageGroup> groups;
  std::vector<int32_t> group_of;  ///< by value; -1 for values out of the order
  std::vector<bool> whole;        ///< by value: it covers its storage densely (no part of a split)

  [[nodiscard]] const StorageGroup& of(ir::ValueId v) const {
    return groups[static_cast<size_t>(group_of[static_cast<size_t>(v.index)])];
  }
  [[nodiscard]] int32_t index(ir::ValueId v) const { return group_of[static_cast<size_t>(v.index)]; }
};

/// Groups along `order`; values in `keep` are used at its end.
StorageGroups storage_groups(const ir::Graph& graph, std::span<const ir::OpId> order,
                             std::span<const ir::ValueId> keep);

}  // namespace plimsoll::passes
