#include "train/variants.h"

namespace plimsoll::train {

Result<RunConfig> with_settings(const RunConfig& config, const SettingTexts& settings) {
  std::vector<std::string> overrides;
  for (const auto& [path, value] : settings) overrides.push_back(path + "=" + value);
  return with_overrides(config, overrides);
}

Variants::Variants(const RunConfig& config, const runtime::Target& target, const PrepareOptions& options)
    : config_(config), target_(target), options_(options) {
  options_.dump_ir.clear();
  if (!options_.memory) options_.memory = read_machine_memory();
}

Result<planner::PlanReport> Variants::plan(const SettingTexts& settings, bool finds_least) const {
  PLIMSOLL_ASSIGN(const RunConfig changed, with_settings(config_, settings));
  PrepareOptions options = options_;
  options.finds_least = false;  // dear, and asked for where nothing fits alone
  PLIMSOLL_ASSIGN(Prepared prepared, prepare(changed, target_, options));
  if (prepared.report.fits || !finds_least) return std::move(prepared.report);
  prepared.programs = {};
  options.finds_least = true;
  PLIMSOLL_ASSIGN(prepared, prepare(changed, target_, options));
  return std::move(prepared.report);
}

}  // namespace plimsoll::train
