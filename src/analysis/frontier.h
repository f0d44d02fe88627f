// Step time against memory: which plans a run has, from the least budget to that beyond which more buys
// nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/techniques.h"
#include "io/tree.h"
#include "strategy/variants.h"

namespace plimsoll::analysis {

/// A plan that no other one beats in both: what a budget gives.
struct FrontierPoint {
  int64_t budget_bytes = 0;  ///< planned with it by itself, the run has this report, byte for byte
  int64_t peak_bytes = 0;    ///< what that budget bounds
  planner::PlanReport report = {};
};

/// What people set by hand, at any budget.
struct FixedPolicy {
  std::string name;
  strategy::SettingTexts settings;
  int64_t peak_bytes = 0;
  double seconds = 0;
};

struct Frontier {
  std::string budget;                 ///< the setting that is varied
  std::vector<FrontierPoint> points;  ///< peaks and budgets rise, seconds fall
  std::vector<FixedPolicy> policies;
  std::optional<FrontierPoint> chosen;  ///< the run's own plan, where it fits
  std::string model;
  int64_t num_plans = 0;  ///< budgets that were tried
};

/// Plans the run under some eighty budgets: evenly from the least to the most useful one, at the peaks of
/// what people set by hand and of what the searches came by, and where the gap between two points is widest.
/// `base` is the run's own plan. What is beaten, in time by what needs no more or
/// in memory by what takes no longer, is left out; so is a plan that a lower budget beats. The least is
/// exact, to the byte; between two points there may be others. Deterministic. Errors: as Variants::plan.
Result<Frontier> plan_frontier(const strategy::Variants& variants, const strategy::Prepared& base,
                               const PlanProgress& progress = {});

/// {"event": "frontier", "budget", "points": [{"budget_bytes", "peak_bytes", "seconds",
/// "tokens_per_second", "choices"}], "chosen": {…} or null, "policies": [{"name", "settings", "peak_bytes",
/// "seconds"}]}
io::Tree frontier_event(const Frontier& frontier);
/// The tables for people.
std::string frontier_table(const Frontier& frontier);
/// The same as a picture: SVG, for light and dark pages.
std::string frontier_svg(const Frontier& frontier);

}  // namespace plimsoll::analysis
