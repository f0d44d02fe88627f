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

/// What calibrate found on the card that its driver calls so, with the library that computes its products
/// here; nothing where it was not called with them. Loads that library where the card was ever calibrated.
/// Errors: of load_profile.
Result<std::optional<planner::MachineProfile>> calibrated_card(std::string_view driver_name);
/// Where calibrate leaves it: card-<name>-cublaslt-<version>.v4.json beside the machine's. Empty where there
/// is no cache folder.
std::string calibrated_card_path(std::string_view driver_name, int64_t library_version);
/// Of what calibrate leaves of a card, "card" or "products": <kind>-<name>-cublaslt-<end> in the cache
/// folder; and whether there is one of any end.
std::string card_file(std::string_view driver_name, std::string_view kind, const std::string& end);
bool was_card_measured(std::string_view driver_name, std::string_view kind);

/// "intel-xeon-processor-2cpu": what the profile of this machine is called.
std::string machine_name();
/// Where calibrate leaves it: $XDG_CACHE_HOME or ~/.cache, /plimsoll/machine-<name>.json. Empty where neither
/// is set.
std::string calibrated_path();
/// And what is measured at first use, with these kernels: first-<name>-<instruction set>.json there.
std::string first_rates_path(std::string_view instruction_set);

}  // namespace plimsoll::strategy
