// `profile --queues`: a device's queues beside each other, as they run in training.
#pragma once

#include <string>

#include "cli/profile/profile_run.h"
#include "profiling/profile.h"

namespace plimsoll::cli {

/// Runs the schedule's steps and writes `folder`/queues.json. Prints a line a queue, or with `json` one
/// object
/// {"event": "queues", …}. Errors: as train::log_queues, and of writing.
Status profile_queues(engine::OpenRun& run, const profiling::ProfileSchedule& schedule,
                      const std::string& folder, bool json);

}  // namespace plimsoll::cli
