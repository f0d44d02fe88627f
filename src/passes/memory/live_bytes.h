// Live bytes of the device arena at each op: the exact sum that no placement can go below.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::passes {

struct LiveBytesOptions {
  std::span<const ir::ValueId> keep = {};
  bool in_place = true;  ///< count results that take an operand's place as the in_place pass decides
  /// Scratch of an op's kernel, by OpId::index; empty: none.
  std::span<const int64_t> workspace_bytes = {};
};
struct LiveBytes {
  int64_t peak_bytes = 0;
  size_t peak_position = 0;      ///< in the order
  std::vector<int64_t> at = {};  ///< by place in the order
};

/// Storages rounded up to the arena's alignment; states, and values written into a state's storage from the
/// start, count nothing. Linear time.
LiveBytes live_bytes(const ir::Graph& graph, std::span<const ir::OpId> order,
                     const LiveBytesOptions& options);

}  // namespace plimsoll::passes
