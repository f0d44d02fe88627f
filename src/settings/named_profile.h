// runtime.profile where it names a machine: one that was measured, or a card of which data sheets tell.
#pragma once

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

/// Whether the run is planned for a card that is not here: runtime.profile names it, and runtime.device none.
/// What is wrong with the profile others say.
bool plans_for_card(const RunConfig& config);

}  // namespace plimsoll::train
