// runtime.profile where it names a machine: one that was measured, or a card of which data sheets tell.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "planner/machine_profile.h"
#include "settings/run_config.h"

namespace plimsoll::train {

/// A card's name or a file (with a '/', or ending in .json). Errors: kInvalidArgument for an unknown name,
/// with the nearest; kBadData for a file.
Result<planner::MachineProfile> named_profile(const std::string& name);

/// What runtime.profile says for the rates that are built in, whatever was measured here.
inline constexpr std::string_view kBuiltIn = "built-in";
/// Whether runtime.profile names one: not auto, not built-in.
bool names_profile(const RunConfig& config);

/// The card that is not here and that the run is planned for: runtime.profile names it, and runtime.device
/// none. Nothing where it is planned for no card; what is wrong with the profile others say.
std::optional<planner::MachineProfile> planned_card(const RunConfig& config);

}  // namespace plimsoll::train
