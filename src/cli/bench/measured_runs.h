// Reads measured step times from the folders of runs and profiles.
#pragma once

#include <string>

#include "planner/cost/step_times.h"

namespace plimsoll::cli {

/// From estimate.json of a profile's folder, else the last "estimate" event among the first lines of a run's
/// events.jsonl. Errors: kBadData, kIo; each names the file and what to do.
Result<planner::StepTimes> read_measured_run(const std::string& folder);

}  // namespace plimsoll::cli
