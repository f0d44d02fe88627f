// The first plan on a machine that nobody calibrated.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "planner/cost/machine_profile.h"
#include "settings/run_config.h"

namespace plimsoll::cli {

/// By the system's clock.
int64_t unix_seconds();

/// Where runtime.profile is auto and nothing is known of this machine's kernels, measures what matters most,
/// keeps it in the cache folder and says so; from then on it is there, and plans are the same from run to
/// run. `measure` runs in a process of its own, so that this one's peak does not know of it: call while no
/// other thread runs. Several processes at once measure one after the other, and all but the first find it
/// done. Rates of a machine that was busy meanwhile are kept and told to be such; they are measured again by
/// the first command that comes ten minutes later, and replaced by those of a quieter moment.
/// What does not work out (no folder that can be written, too little memory, a memory.budget that measuring
/// would exceed) changes nothing: plans go by what is known, or by the built-in rates. An error of
/// `measure`'s is told.
/// `now`: seconds since 1970.
void measure_at_first_use(const settings::RunConfig& config,
                          const std::function<Result<planner::MachineProfile>()>& measure,
                          const std::function<int64_t()>& now = unix_seconds);

}  // namespace plimsoll::cli
