// Measures the rates of copies and of the disk: each way alone, both at once, and beside kernels, whose time
// they take.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "measuring/kernel_rates.h"
#include "planner/cost/machine_profile.h"

namespace plimsoll::measuring {

struct CopyPlan {
  double seconds = 0.6;  ///< that each combination of queues works, about
  int64_t memory_bytes = int64_t{64} << 20, disk_bytes = int64_t{256} << 20;
};

/// Copies between the host's memory and that of `device`, which logs its queues: copy_* of the profile.
/// Errors: of the device; kIo where there is no memory.
Status measure_copies(const CopyPlan& plan, runtime::Device& device, planner::MachineProfile& profile,
                      const Shown& shown);
/// The same by queues' own threads, as `discrete` makes them. Errors: kIo, where there are no threads too.
Status measure_copies(const CopyPlan& plan, planner::MachineProfile& profile, const Shown& shown);

/// Reads and writes past the system's cache as offload makes them, in a file without a name in `folder`, then
/// reads out of the cache: disk_* and `disk`. At most a quarter of what is free is taken for it. Errors: kIo
/// where no such file can be made, or the disk fails.
Status measure_disk(const CopyPlan& plan, const std::string& folder, planner::MachineProfile& profile,
                    const Shown& shown);

}  // namespace plimsoll::measuring
