// The copies, host kernels and exchanges between ranks that run beside a device's kernels, and their
// dependencies.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace plimsoll::passes {

/// Queues beside the kernels': copies to the device, all others, what the host computes, and what ranks
/// exchange.
inline constexpr size_t kQueueIn = 0, kQueueOut = 1, kQueueHost = 2, kQueueNetwork = 3, kQueuesBeside = 4;

/// How much of each queue has ended. As each keeps its order, that says which.
using QueuesEnded = std::array<int32_t, kQueuesBeside>;

inline QueuesEnded later(const QueuesEnded& a, const QueuesEnded& b) {
  QueuesEnded both = {};
  for (size_t q = 0; q < kQueuesBeside; ++q) both[q] = std::max(a[q], b[q]);
  return both;
}

/// A copy, a kernel of the host, or an op between ranks.
struct QueueWork {
  int64_t bytes = 0;                                ///< of a copy
  ir::MemorySpace from = ir::MemorySpace::kDevice;  ///< of a copy
  ir::MemorySpace to = ir::MemorySpace::kDevice;
  int32_t op_place = -1;   ///< of what is no copy, in the order; -1: a copy
  int32_t place = 0;       ///< it may begin when the kernels have come so far in the order
  QueuesEnded after = {};  ///< and these have ended
};

struct QueueProgram {
  std::array<std::vector<QueueWork>, kQueuesBeside> queues;
  std::vector<QueuesEnded> needs;  ///< by place in the order: before the op there runs

  /// Behind what `inputs` say, which then say that it has ended.
  void add(size_t queue, QueuesEnded& inputs, QueueWork work) {
    work.after = inputs;
    queues[queue].push_back(work);
    inputs[queue] = std::max(inputs[queue], static_cast<int32_t>(queues[queue].size()));
  }
};

}  // namespace plimsoll::passes
