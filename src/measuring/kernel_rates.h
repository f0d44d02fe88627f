// Measures the rates of a device's kernels, one op after the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measuring/op_samples.h"
#include "planner/cost/machine_profile.h"

namespace plimsoll::measuring {

/// How far it has come, from 0 to 1, and at what.
using Shown = std::function<void(double fraction, const std::string& what)>;

struct KernelPlan {
  std::vector<SampleGroup> groups;
  double seconds_per_op = 0.02;
  /// The median over several rounds, which meet different moments of what neighbours do. Those behind the
  /// first end after so many seconds.
  int rounds = 1;
  double seconds_for_rounds = 0;
  /// Nothing more is begun behind it: what is left out keeps the built-in rates.
  double most_seconds = 1e9;
  /// Operands take turns over so much: a step finds weights and what backward reads in memory, not in caches.
  int64_t spread_bytes = 0;
  /// Of the ops that say what the memory gives: their operands are to be larger than all caches.
  int64_t memory_elements = int64_t{4} << 20;
  bool fewer_threads = false;
  /// Samples that the device has no kernel for, or whose operands take more bytes than this, are left out.
  int64_t most_bytes = int64_t{1} << 62;
};

/// Rates of this machine with all CPUs that the process may use, and the spread between rounds; name, source
/// and rates' kind are not set. With `fewer_threads` also what 1, 2, 4, … reach. All that is measured takes
/// turns within each round: large memory-bound ops and what a launch costs, each sample, each number of
/// threads.
planner::MachineProfile measure_kernels(const KernelPlan& plan, const Shown& shown);

/// `profile` with the rates of a card's kernels, by its own clock, and what an op of a captured program takes
/// beside them. Errors: of the device.
Result<planner::MachineProfile> measure_card_kernels(const KernelPlan& plan, runtime::Device& device,
                                                     planner::MachineProfile profile, const Shown& shown);

}  // namespace plimsoll::measuring
