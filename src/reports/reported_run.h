// All that a report says of a run, from its folder. Only events.jsonl has to be there; what else is missing
// or cannot be read is left out, with a note that says so.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/techniques.h"
#include "io/tree.h"
#include "planner/report/memory_timeline.h"
#include "reports/pictures.h"
#include "reports/run_events.h"

namespace plimsoll::reports {

struct SettingRow {
  std::string path, value, usual;  ///< as YAML; `usual`: the default
};

/// The run's plan: as its plan.json has it, else planned again from its run.yaml.
struct ReportedPlan {
  bool device_is_process = true;
  bool kept = false;  ///< from plan.json
  planner::MemoryTimeline timeline;
  std::vector<analysis::TechniqueRow> techniques;
};

struct ReportedRun {
  std::string folder, name;
  RunEvents events;
  io::Tree environment, ops,
      verdict;  ///< environment.json, a profile's ops.json and verdict.json; null: none
  std::vector<SettingRow> settings;
  std::optional<ReportedPlan> plan;
  std::vector<ReportedPicture> pictures;  ///< of the last evaluation
  std::vector<std::string> notes;         ///< what is left out, and why
};

/// Which plans are made of run.yaml.
enum class Planning : uint8_t {
  kNone,
  kQuick,  ///< the run's own where there is no plan.json; the techniques' where that one took no longer than
           ///< kQuickPlanSeconds
  kAll
};
inline constexpr double kQuickPlanSeconds = 0.015;  ///< some thirty of them stay below half a second

/// Errors: kBadData where the folder is no run's; kIo.
Result<ReportedRun> read_run(const std::string& folder, Planning planning);

}  // namespace plimsoll::reports
