// How long a program waits for its copies, which run on queues of their own beside the kernels.
#pragma once

#include <span>

#include "ir/graph.h"
#include "planner/machine_profile.h"

namespace plimsoll::planner {

/// Bytes a second of a disk of which nothing is known.
inline constexpr double kUnknownDiskBandwidth = 1e9;

/// Seconds of a copy from one space to another.
double copy_seconds(const MachineProfile& profile, int64_t bytes, ir::MemorySpace from, ir::MemorySpace to);

/// Seconds that the program takes beyond those of its kernels, by a simulation of its queues: each runs its
/// work in order; a load begins when its place in the order has come, as its bytes are free then; a store
/// when its source is there; what reads a copy waits for it, and where a store ends in the order all wait for
/// it, as its bytes go on to others. `kernel_seconds` by place in the order; those of copies are not read.
double waiting_seconds(const ir::Graph& graph, std::span<const double> kernel_seconds,
                       const MachineProfile& profile);

}  // namespace plimsoll::planner
