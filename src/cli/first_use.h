// The first plan on a machine that nobody calibrated.
#pragma once

#include <functional>

#include "base/result.h"
#include "planner/machine_profile.h"
#include "settings/run_config.h"

namespace plimsoll::cli {

/// Where runtime.profile is auto and nothing is known of this machine's kernels, measures what matters most,
/// keeps it in the cache folder and says so; from then on it is there, and plans are the same from run to
/// run. `measure` runs in a process of its own, so that this one's peak does not know of it: call while no
/// other thread runs. Several processes at once measure one after the other, and all but the first find it
/// done. What does not work out (no folder that can be written, too little memory) changes nothing: plans go
/// by the built-in rates. An error of `measure`'s is told.
void measure_at_first_use(const RunConfig& config,
                          const std::function<Result<planner::MachineProfile>()>& measure);

}  // namespace plimsoll::cli
