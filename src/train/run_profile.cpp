#include "train/run_profile.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>

#include "base/process.h"
#include "planner/known_profiles.h"

namespace plimsoll::train {
namespace {

/// The card whose memory is nearest, for one that is here and was not measured.
planner::MachineProfile like_card(int64_t memory_bytes) {
  std::optional<planner::MachineProfile> nearest;
  const auto distance = [&](const planner::MachineProfile& p) {
    return std::abs(p.memory_bytes - memory_bytes);
  };
  for (const std::string& name : planner::card_names()) {
    auto card = planner::find_card(name);
    if (card && (!nearest || distance(*card) < distance(*nearest))) nearest = std::move(*card);
  }
  nearest->rates = "uncalibrated";
  return *nearest;
}

}  // namespace

Result<planner::MachineProfile> named_profile(const std::string& name) {
  const bool is_file = name.find('/') != std::string::npos || name.ends_with(".json");
  return is_file ? planner::load_profile(name) : planner::find_card(name);
}

Result<planner::MachineProfile> run_profile(const RunConfig& config, const runtime::Target& target) {
  if (config.runtime.profile != "auto") return named_profile(config.runtime.profile);
  if (target.name() == "cuda") return like_card(target.memory_bytes());
  const std::string path = calibrated_path();
  std::error_code ignored;
  if (!path.empty() && std::filesystem::exists(path, ignored)) {
    PLIMSOLL_ASSIGN(planner::MachineProfile profile, planner::load_profile(path));
    if (profile.instruction_set == target.instruction_set()) return profile;
  }
  return planner::generic_cpu(target.instruction_set());
}

std::string machine_name() {
  const std::string processor = processor_name();
  std::string name;
  for (const char c : processor.empty() ? "cpu" : processor) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  return fmt::format("{}-{}cpu", name.substr(0, 60), num_available_cpus());
}

std::string calibrated_path() {
  const std::string folder = user_cache_folder();
  // Of a version: another program's profile is not in the way.
  return folder.empty() ? folder
                        : fmt::format("{}/plimsoll/machine-{}.v{}.json", folder, machine_name(),
                                      planner::kProfileVersion);
}

}  // namespace plimsoll::train
