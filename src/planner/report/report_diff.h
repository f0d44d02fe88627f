// Two plans side by side: what of the settings differs, and what that costs or saves.
#pragma once

#include <string>
#include <vector>

#include "io/tree.h"
#include "planner/report/report.h"

namespace plimsoll::planner {

/// A setting that the runs do not share, and its values as YAML.
struct SettingDifference {
  std::string path, a, b;
};

struct PlanDiff {
  std::string name_a, name_b;  ///< the run files
  PlanReport a, b;
  std::vector<SettingDifference> settings;
};

/// The `plan_diff` event: both plans as plan_event has them, "settings", and "differences": rows of section,
/// name, a, b, difference (b - a) and percent (of a); null where a plan has no such phase, or a is 0.
io::Tree plan_diff_event(const PlanDiff& diff);
/// Aligned tables for people: settings, bytes by class and by phase, peaks, work, choices. Rows of zeros are
/// left out.
std::string plan_diff_table(const PlanDiff& diff);

}  // namespace plimsoll::planner
