// The machine that a plan is for: what runtime.profile names, or what this one was measured to do.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "planner/cost/machine_profile.h"
#include "runtime/target.h"
#include "settings/named_profile.h"

namespace plimsoll::strategy {

/// runtime.profile; of a card that is here, those of the card of its name, and where none has it no rates
/// that are known; auto on the CPU: this machine's own where it was calibrated with the same kernels, else
/// what was measured at first use, else the built-in one of its kind. Errors: as named_profile; of a damaged
/// file that calibrate left too.
Result<planner::MachineProfile> run_profile(const settings::RunConfig& config, const runtime::Target& target);

/// What calibrate found with these kernels; nothing where it was not called with them. Errors: of
/// load_profile.
Result<std::optional<planner::MachineProfile>> calibrated_rates(std::string_view instruction_set);
/// What was measured at first use; nothing where that is not there, damaged, or another machine's.
std::optional<planner::MachineProfile> first_rates(std::string_view instruction_set);

/// "intel-xeon-processor-2cpu": what the profile of this machine is called.
std::string machine_name();
/// Where calibrate leaves it: $XDG_CACHE_HOME or ~/.cache, /plimsoll/machine-<name>.json. Empty where neither
/// is set.
std::string calibrated_path();
/// And what is measured at first use, with these kernels: first-<name>-<instruction set>.json there.
std::string first_rates_path(std::string_view instruction_set);

}  // namespace plimsoll::strategy
