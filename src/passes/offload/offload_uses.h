// Facts about a scheduled program that `offload` needs for any choice of offloaded tensors: its values,
// states, and who reads them when.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace plimsoll::passes {

/// An op that computes with a value, at its place in the order.
struct ItemUse {
  int32_t at = 0;
  ir::ValueId part = {};  ///< the window of the value that it reads; invalid: all of it, or several
};

/// Uses so close, or of one block and so close, are served by one load.
inline constexpr int32_t kClose = 8, kCloseInBlock = 48;

/// Of a graph in its order, which stays as it is.
struct OffloadUses {
  /// `last_forward_op`: the op that gives the loss; invalid: there is none.
  OffloadUses(const ir::Graph& graph, ir::OpId last_forward_op);
  /// Ops between two places; views of an update's windows are none, so that its parameter is as near as to
  /// the whole update.
  [[nodiscard]] int32_t distance(int32_t from, int32_t to) const {
    return clock[static_cast<size_t>(to)] - clock[static_cast<size_t>(from)];
  }
  /// Whether what was loaded for an op is best kept for the later one at `use`: they are close, or of one
  /// block and not far.
  [[nodiscard]] bool are_close(const ir::Graph& graph, int32_t before, int32_t use) const;

  int32_t boundary = -1;                   ///< place of the op that gives the loss
  std::vector<int32_t> clock;              ///< by place: ops so far; views of an update's windows are none
  std::vector<int32_t> made;               ///< by value: place in the order; -1: out of it
  std::vector<ir::ValueId> roots;          ///< by value: what it is a view of, through all views
  std::vector<std::vector<ItemUse>> uses;  ///< by root: ops that compute with it
  std::vector<bool> in_state;              ///< by root: a state is assigned it
  std::vector<bool> is_gradient;           ///< by root: the ops norming the gradients read it
  /// By value: the window of its root that it shows for an update (chunked_update.h), of which each is read
  /// once; invalid: it shows anything else.
  std::vector<ir::ValueId> parts;
  std::vector<int32_t> state;         ///< by place: index of the state that is read or assigned there; -1
  std::vector<int32_t> assigned;      ///< by state: place of its last assignment; -1
  std::vector<int32_t> read_again;    ///< by place of an assignment: where its state is read next; -1
  std::vector<bool> is_read_again;    ///< by place of a read: the state has been assigned before
  std::vector<int32_t> state_blocks;  ///< by state: as block_of_state
};

}  // namespace plimsoll::passes
