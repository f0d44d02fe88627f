#include "strategy/variants.h"

namespace plimsoll::strategy {
namespace {

/// What no strategy's plan depends on.
bool bounds_memory(std::string_view path) {
  return path == "memory.budget" || path == "memory.device_budget" || path == "memory.host_budget";
}

}  // namespace

Result<settings::RunConfig> with_settings(const settings::RunConfig& config, const SettingTexts& settings) {
  std::vector<std::string> overrides;
  for (const auto& [path, value] : settings) overrides.push_back(path + "=" + value);
  return settings::with_overrides(config, overrides);
}

Variants::Variants(const settings::RunConfig& config, const runtime::Target& target,
                   const PrepareOptions& options, PlanCache cache)
    : config_(config), target_(target), options_(options), cache_(std::move(cache)) {
  options_.dump_ir.clear();
  if (!options_.memory) options_.memory = read_machine_memory();
}

Result<planner::PlanReport> Variants::plan(const SettingTexts& settings, bool finds_least) const {
  // The least is dear, and asked for where nothing fits alone.
  PLIMSOLL_ASSIGN(Variant variant, look(settings, /*finds_least=*/false));
  if (!variant.report.fits && finds_least) {
    PLIMSOLL_ASSIGN(variant, look(settings, /*finds_least=*/true));
  }
  return std::move(variant.report);
}

Result<Variant> Variants::look(const SettingTexts& settings, bool finds_least) const {
  PLIMSOLL_ASSIGN(const settings::RunConfig changed, with_settings(config_, settings));
  SettingTexts others = settings;
  std::erase_if(others, [](const auto& setting) { return bounds_memory(setting.first); });
  if (others != last_) cache_ = {};
  last_ = std::move(others);
  PrepareOptions options = options_;
  options.request = finds_least ? PlanRequest::kReport : PlanRequest::kFit;
  PLIMSOLL_ASSIGN(Prepared prepared, prepare(changed, target_, options, cache_));
  return Variant{std::move(prepared.report), std::move(prepared.considered)};
}

}  // namespace plimsoll::strategy
