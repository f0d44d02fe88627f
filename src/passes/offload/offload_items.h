// The tensors of a program that are offloaded, and when: the part of `offload` that decides.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "ir/graph.h"
#include "passes/offload/offload.h"
#include "passes/offload/offload_uses.h"

namespace plimsoll::passes {

/// Ops that read an item one after the other, for which it is loaded once. Places in the order.
struct OffloadLoad {
  int32_t item = -1;
  ir::ValueId part = {};  ///< a window of the item that alone is loaded; invalid: all of it
  int64_t bytes = 0;
  ir::MemorySpace to = ir::MemorySpace::kDevice;  ///< or kHostPinned, for kernels of the host
  int32_t first = 0, last = 0;                    ///< of the ops that read it
  int32_t start = 0;                              ///< the copy begins before the op there; at most `first`
};

/// What is written elsewhere: a value behind its last use for now, or a state where it is assigned, of the
/// device's too where the host has made its value.
struct OffloadStore {
  int32_t item = -1;  ///< of a value; -1: of an assigned state
  ir::OpId assign = {};
  int64_t bytes = 0;
  ir::MemorySpace from = ir::MemorySpace::kDevice;
  int32_t at = 0;    ///< a value: behind the op there; a state: in the assignment's place
  int32_t done = 0;  ///< the source's bytes live until the op there begins; at least at + 1
  int32_t latest = std::numeric_limits<int32_t>::max();  ///< of done: the state is read there again
};

/// A value that lies elsewhere while nothing reads it: a state's, or one that the program makes. Or one of
/// the device's that kernels of the host read too.
struct OffloadItem {
  ir::ValueId value;
  ir::MemorySpace space = ir::MemorySpace::kDevice;
  bool is_state = false;
  bool stays = false;    ///< on the device: what is loaded is for the host
  int32_t earliest = 0;  ///< loads begin there or later: a state, behind an assignment before its read
  int32_t store = -1;    ///< of a value: index into the stores
};

struct OffloadItems {
  std::vector<OffloadItem> items;
  std::vector<OffloadLoad> loads;  ///< by first use
  std::vector<OffloadStore> stores;
  std::vector<int32_t> item_of;  ///< by value: its own or, of a view, what it shows; -1: none
  std::vector<bool> on_host;     ///< by place in the order: the host runs it
};

/// Loads begin at their first use and stores end at once. `uses` are the graph's.
OffloadItems find_offload_items(const ir::Graph& graph, const OffloadUses& uses,
                                const OffloadOptions& options);

}  // namespace plimsoll::passes
