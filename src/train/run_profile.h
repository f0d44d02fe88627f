// The machine that a plan is for: what runtime.profile names, or what this one was measured to do.
#pragma once

#include <string>

#include "planner/machine_profile.h"
#include "runtime/target.h"
#include "settings/run_config.h"

namespace plimsoll::train {

/// A card's name or a file (with a '/', or ending in .json). Errors: kInvalidArgument for an unknown name,
/// with the nearest; kBadData for a file.
Result<planner::MachineProfile> named_profile(const std::string& name);

/// runtime.profile; auto: this machine's own where it was calibrated with the same kernels, else the
/// built-in one of its kind. Errors: as named_profile; of a damaged file of this machine's too.
Result<planner::MachineProfile> run_profile(const RunConfig& config, const runtime::Target& target);

/// "intel-xeon-processor-2cpu": what the profile of this machine is called.
std::string machine_name();
/// Where calibrate leaves it: $XDG_CACHE_HOME or ~/.cache, /plimsoll/machine-<name>.json. Empty where neither
/// is set.
std::string calibrated_path();

}  // namespace plimsoll::train
