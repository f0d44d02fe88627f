// Parameters of which each rank keeps a part (ZeRO-3): a program makes one whole before the ops that read it
// and frees it behind them. Uses that are close share one gather, as they share a load of `offload`; backward
// has one of its own, but for what stays.
//
//   %1 = state {name="w"} : f32[300,100]          ==>   %1 = state {name="w"} : f32[16384]
//   %2 = linear(%0, %1)                                 %2 = unshard(%1) {ranks=2, shape=[300,100]}
//                                                       %3 = linear(%0, %2)
//
// Parameters that each rank has whole and updates a piece of (ZeRO-1, ZeRO-2) may be gathered late: an update
// leaves each rank its own piece, and the program that begins the next step gathers the others' where the
// parameter is first read.
//
//   update   %9 = all_gather(%8, %1)              ==>   %9 = put_piece(%8, %1)
//   forward  %2 = linear(%0, %1)                  ==>   %2 = own_piece(%1)
//                                                       %3 = all_gather(%2, %1)
//                                                       %4 = linear(%0, %3)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

/// A state that models read whole, and what a rank keeps of it.
struct ShardedState {
  std::string name;
  std::string kept;     ///< the state in which the rank keeps its part
  ir::TensorType type;  ///< of that
  int32_t owner = -1;   ///< the rank that has all of it; -1: each has a piece
  bool stays = false;   ///< gathered once: whole from its first use to its last, in backward as well
};

struct Sharding {
  int64_t ranks = 1;
  std::vector<ShardedState> states = {};
  std::vector<std::string> late = {};  ///< parameters that are gathered late
  bool gathers_late = false;           ///< before they are read: the program begins a step
};

/// Ids of the graph that outside holders need; replaced by what stands for them.
struct UnshardHolders {
  ir::OpId* last_forward_op = nullptr;
  std::span<ir::ValueId> keep = {};
};

/// Writes the graph anew, in the order that it has; ids do not last. Errors: kInvalidArgument where a part is
/// not of its tensor.
Status unshard(ir::Graph& graph, const Sharding& sharding, const UnshardHolders& holders = {});

}  // namespace plimsoll::passes
