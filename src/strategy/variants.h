// A run with other settings, planned: what remedies, techniques and dimensions are made of.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strategy/plan_cache.h"
#include "strategy/prepare.h"

namespace plimsoll::strategy {

/// Paths of settings and their YAML values, as overrides of the command line have them.
using SettingTexts = std::vector<std::pair<std::string, std::string>>;

/// What the command line would make of the run with `settings` behind its overrides. Errors: as
/// parse_run_config.
Result<settings::RunConfig> with_settings(const settings::RunConfig& config, const SettingTexts& settings);

/// A variant as it was planned.
struct Variant {
  planner::PlanReport report;
  std::vector<planner::Alternative> considered;
};

/// Plans variants of one run, one at a time, all against the memory that the machine had when this was made.
class Variants {
 public:
  /// `config` and `target` outlive it; of `options` the text of programs is left out. `cache`: of plans of
  /// the run itself.
  Variants(const settings::RunConfig& config, const runtime::Target& target, const PrepareOptions& options,
           PlanCache cache = {});

  /// The same as a plan of the run with those settings by itself. `finds_least` false: where nothing fits,
  /// any plan that does not. Errors: as with_settings and prepare.
  [[nodiscard]] Result<planner::PlanReport> plan(const SettingTexts& settings, bool finds_least = true) const;
  /// The same with all that was planned for it. `finds_least` true: where nothing fits, the least.
  [[nodiscard]] Result<Variant> look(const SettingTexts& settings, bool finds_least) const;
  /// What is in force in the run itself.
  [[nodiscard]] const settings::RunConfig& config() const { return config_; }

 private:
  const settings::RunConfig& config_;
  const runtime::Target& target_;
  PrepareOptions options_;
  // Plans of the variant that was planned last, whatever its budgets: they are often asked for again.
  mutable SettingTexts last_;
  mutable PlanCache cache_;
};

}  // namespace plimsoll::strategy
