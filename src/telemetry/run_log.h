// events.jsonl in a run's folder: the lines of `train --json`, whole over all the processes of the run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::telemetry {

inline constexpr std::string_view kEventsFile = "events.jsonl";

/// The step that an event is of: a step, an evaluation, a checkpoint, a warning; -1 for what is of a process.
int64_t step_of_event(std::string_view line);

/// Takes out of an earlier process's events what comes after `step`, from which the run goes on, and a last
/// line that is torn; step 0: all of it. Nothing where there is no file. Errors: kIo.
Status cut_events(const std::string& path, int64_t step);

/// Each whole line. Errors: as LineReader; what `take` returns.
Status for_each_event(const std::string& path, const std::function<Status(std::string_view)>& take);

}  // namespace plimsoll::telemetry
