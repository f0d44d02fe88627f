// runtime.profile where it names a machine: one that was measured, or a card of which data sheets tell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planner/cost/machine_profile.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// A card's name or a file (with a '/', or ending in .json). Errors: kInvalidArgument for an unknown name,
/// with the nearest; kBadData for a file.
Result<planner::MachineProfile> named_profile(const std::string& name);

/// What runtime.profile says for the rates that are built in, whatever was measured here.
inline constexpr std::string_view kBuiltIn = "built-in";
/// Whether runtime.profile names one: not auto, not built-in.
bool names_profile(const RunConfig& config);

/// The card that runtime.profile names. Nothing where it names none, and where runtime.device is the discrete
/// device, which takes such a profile's rates alone; what is wrong with the profile others say.
std::optional<planner::MachineProfile> planned_card(const RunConfig& config);

/// Whether the run is for a CUDA card: runtime.device says so, or runtime.profile names one.
bool is_for_card(const RunConfig& config);
/// "the card rtx4090", "runtime.device cuda": what the run is for, in messages.
std::string device_text(const RunConfig& config);

/// A line where the card that is named has no backend.
std::vector<std::string> profile_notes(const RunConfig& config);

}  // namespace plimsoll::settings
