#include "settings/named_profile.h"

#include "planner/cost/known_profiles.h"

namespace plimsoll::settings {

Result<planner::MachineProfile> named_profile(const std::string& name) {
  const bool is_file = name.find('/') != std::string::npos || name.ends_with(".json");
  return is_file ? planner::load_profile(name) : planner::find_card(name);
}

bool names_profile(const RunConfig& config) {
  return config.runtime.profile != "auto" && config.runtime.profile != kBuiltIn;
}

std::optional<planner::MachineProfile> planned_card(const RunConfig& config) {
  if (config.runtime.device == "discrete" || !names_profile(config)) return std::nullopt;
  auto profile = named_profile(config.runtime.profile);
  if (!profile || profile->memory_bytes == 0) return std::nullopt;
  return std::move(*profile);
}

bool is_for_card(const RunConfig& config) {
  return config.runtime.device.starts_with("cuda") || planned_card(config).has_value();
}

std::string device_text(const RunConfig& config) {
  return planned_card(config) ? "the card " + config.runtime.profile
                              : "runtime.device " + config.runtime.device;
}

std::vector<std::string> profile_notes(const RunConfig& config) {
  const auto card = planned_card(config);
  if (!card || planner::cuda_capability(*card) > 0 || card->rates != "data sheet") return {};
  return {"runtime.profile " + card->name +
          " is not a CUDA card, and no backend runs on it: the plan uses the CUDA backend's kernels within "
          "its memory"};
}

}  // namespace plimsoll::settings
