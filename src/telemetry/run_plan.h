// Reads and writes plan.json, the plan that a run leaves in its
// folder.
#pragma once

#include <string>
#include <string_view>

#include "planner/report/memory_timeline.h"
#include "strategy/prepare.h"

namespace plimsoll::telemetry {

inline constexpr std::string_view kPlanFile = "plan.json";

struct RunPlan {
  bool device_is_process = true;  ///< as planner::PlanReport
  double planning_seconds = 0;
  /// Of the program with the largest arena; of neighbouring points the one with the most where there are many
  /// (timeline_columns), without tensors and phases.
  planner::MemoryTimeline timeline;
};

RunPlan run_plan(const planner::PlanReport& report, const passes::SessionPlan& session);
std::string run_plan_json(const RunPlan& plan);
/// Strict, of what may come from anywhere. Errors: kBadData.
Result<RunPlan> parse_run_plan(std::string_view text);

}  // namespace plimsoll::telemetry
