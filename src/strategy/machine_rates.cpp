#include "strategy/machine_rates.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <optional>

#include "base/process.h"
#include "devices/devices.h"
#include "io/file.h"
#include "planner/cost/known_profiles.h"
#include "strategy/run_card.h"

namespace plimsoll::strategy {
namespace {

/// Of a version: another program's profile is not in the way. Empty where there is no cache folder.
std::string kept_at(const std::string& name) {
  const std::string folder = user_cache_folder();
  return folder.empty() ? folder
                        : fmt::format("{}/plimsoll/{}.v{}.json", folder, name, planner::kProfileVersion);
}

/// In lower case, with a dash for whatever is no letter or digit.
std::string plain_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  return name;
}

std::string card_prefix(std::string_view driver_name, std::string_view kind) {
  return fmt::format("{}-{}-cublaslt-", kind, plain_name(driver_name).substr(0, 60));
}

}  // namespace

std::optional<planner::MachineProfile> first_rates(std::string_view instruction_set) {
  const std::string path = first_rates_path(instruction_set);
  if (path.empty() || !io::is_file(path)) return std::nullopt;
  auto profile = planner::load_profile(path);
  const bool is_its_own = profile && profile->rates == "measured" && profile->name == machine_name() &&
                          profile->instruction_set == instruction_set && profile->memory_bytes == 0;
  return is_its_own ? std::optional(std::move(*profile)) : std::nullopt;
}

Result<std::optional<planner::MachineProfile>> calibrated_rates(std::string_view instruction_set) {
  const std::string path = calibrated_path();
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored))
    return std::optional<planner::MachineProfile>();
  PLIMSOLL_ASSIGN(planner::MachineProfile profile, planner::load_profile(path));
  if (profile.instruction_set != instruction_set) return std::optional<planner::MachineProfile>();
  return std::optional(std::move(profile));
}

std::string card_file(std::string_view driver_name, std::string_view kind, const std::string& end) {
  const std::string folder = user_cache_folder();
  return folder.empty() ? folder : folder + "/plimsoll/" + card_prefix(driver_name, kind) + end;
}

bool was_card_measured(std::string_view driver_name, std::string_view kind) {
  const std::string prefix = card_prefix(driver_name, kind);
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(user_cache_folder() + "/plimsoll", none))
    if (entry.path().filename().string().starts_with(prefix)) return true;
  return false;
}

std::string calibrated_card_path(std::string_view driver_name, int64_t library_version) {
  return card_file(driver_name, "card",
                   fmt::format("{}.v{}.json", library_version, planner::kProfileVersion));
}

Result<std::optional<planner::MachineProfile>> calibrated_card(std::string_view driver_name) {
  if (!was_card_measured(driver_name, "card")) return std::optional<planner::MachineProfile>();
  const auto version = devices::product_library_version();
  if (!version) return std::optional<planner::MachineProfile>();
  const std::string path = calibrated_card_path(driver_name, *version);
  if (!io::is_file(path)) return std::optional<planner::MachineProfile>();
  PLIMSOLL_ASSIGN(planner::MachineProfile profile, planner::load_profile(path));
  return std::optional(std::move(profile));
}

Result<planner::MachineProfile> run_profile(const settings::RunConfig& config,
                                            const runtime::Target& target) {
  if (settings::names_profile(config)) return settings::named_profile(config.runtime.profile);
  if (const auto card = run_card(config)) {
    if (config.runtime.profile == "auto") {
      PLIMSOLL_ASSIGN(auto calibrated, calibrated_card(card->name));
      if (calibrated) return std::move(*calibrated);
    }
    return card->profile ? *card->profile : planner::card_of_no_known_rates();
  }
  if (config.runtime.profile == "auto") {
    PLIMSOLL_ASSIGN(auto calibrated, calibrated_rates(target.instruction_set()));
    if (calibrated) return std::move(*calibrated);
    if (auto first = first_rates(target.instruction_set())) return std::move(*first);
  }
  return planner::generic_cpu(target.instruction_set());
}

std::string machine_name() {
  const std::string processor = processor_name();
  const std::string name = plain_name(processor.empty() ? "cpu" : processor);
  return fmt::format("{}-{}cpu", name.substr(0, 60), num_available_cpus());
}

std::string calibrated_path() { return kept_at("machine-" + machine_name()); }

std::string first_rates_path(std::string_view instruction_set) {
  return kept_at(fmt::format("first-{}-{}", machine_name(), instruction_set));
}

}  // namespace plimsoll::strategy
