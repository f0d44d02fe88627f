#include "settings/named_profile.h"

#include "planner/known_profiles.h"

namespace plimsoll::train {

Result<planner::MachineProfile> named_profile(const std::string& name) {
  const bool is_file = name.find('/') != std::string::npos || name.ends_with(".json");
  return is_file ? planner::load_profile(name) : planner::find_card(name);
}

bool names_profile(const RunConfig& config) {
  return config.runtime.profile != "auto" && config.runtime.profile != kBuiltIn;
}

std::optional<planner::MachineProfile> planned_card(const RunConfig& config) {
  if (config.runtime.device != "cpu" || !names_profile(config)) return std::nullopt;
  auto profile = named_profile(config.runtime.profile);
  if (!profile || profile->memory_bytes == 0) return std::nullopt;
  return std::move(*profile);
}

}  // namespace plimsoll::train
