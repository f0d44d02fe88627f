// System counters that explain why a step waited.
#pragma once

#include <cstdint>
#include <map>

namespace plimsoll::profiling {

/// Since the start; differences over a step mean something. 0 where the kernel does not tell.
struct StepWaits {
  /// By thread, of the caller's and of those that kernels run on: seconds that it could have run and another
  /// had its CPU.
  std::map<int64_t, double> taken_seconds = {};  ///< the caller's is at 0
  /// Of CPUs, that loaders and who writes checkpoints had.
  double loading_seconds = 0, saving_seconds = 0;
  /// Of all CPUs of the machine, also while they wait for a disk or do what gives way to this process (nice).
  double idle_seconds = 0;
  int64_t read_bytes = 0;  ///< from storage, by the process; what a cache held does not count

  /// Of the caller, or of all threads in the mean, whichever lost more: what one does not get done of an op
  /// the others do, or wait for.
  [[nodiscard]] double taken_seconds_since(const StepWaits& before) const;
};
StepWaits step_waits();

}  // namespace plimsoll::profiling
