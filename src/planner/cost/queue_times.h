// Simulates how long a program waits for copies, host kernels and other ranks, which run on queues beside the
// device's kernels.
#pragma once

#include <span>

#include "ir/graph.h"
#include "passes/offload/copy_seconds.h"
#include "passes/order/queue_program.h"
#include "planner/cost/machine_profile.h"

namespace plimsoll::planner {

/// Bytes a second of a disk of which nothing is known.
inline constexpr double kUnknownDiskBandwidth = 1e9;

/// What a copy does, by what else is under way.
struct CopyRates {
  double alone = 1;           ///< bytes a second
  double beside_kernels = 1;  ///< the part of it that is left beside kernels
  double beside_copy = 1;     ///< beside one the other way, where both use the disk
  double kernel_seconds = 0;  ///< by which a second of it lengthens the kernels beside it
};
/// Of a copy from one space to another; what the profile does not know costs nothing. A disk is reached over
/// the link, and is no quicker.
CopyRates copy_rates(const MachineProfile& profile, ir::MemorySpace from, ir::MemorySpace to);

/// Seconds of copies beside kernels and, where they use the disk, beside a copy the other way.
passes::CopySeconds copy_seconds(const MachineProfile& profile);

/// Of a program with its copies: a load begins when its place in the order has come, as its bytes are free
/// then; a store when its source is there; what reads a copy waits for it, and where a store ends in the
/// order all wait for it, as its bytes go on to others.
passes::QueueProgram queue_program(const ir::Graph& graph);

/// Seconds that the program takes beyond those of its kernels, by a simulation of its queues, each of which
/// runs its work in order. Copies are slower beside others and beside kernels, and these beside copies, as
/// the profile has it. The host's kernels run in order too; where the device is the same processor, each of
/// two that run beside each other gets half of it. What ranks exchange begins when its place in the order has
/// come; `network_is_apart`: it takes nothing from the kernels, else the same processor moves it.
/// `kernel_seconds` by place in the order, the host's and the network's too; 0 of what is none.
double waiting_seconds(const passes::QueueProgram& program, std::span<const double> kernel_seconds,
                       const MachineProfile& profile, bool network_is_apart = true);

}  // namespace plimsoll::planner
