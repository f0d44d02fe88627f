// `profile --ladder`: what the settings of how a run is run would gain, measured one after the other.
#pragma once

#include <string>

#include "profiling/profile.h"
#include "settings/run_config.h"

namespace plimsoll::cli {

/// Measures the run as it is, then, on what is best so far, each setting that could move it, in turns of
/// short real runs in `folder`; what is faster in each turn, and by more than kLeastGain, is kept. Prints a
/// line a rung, or with `json` one object {"event": "ladder", "rungs": [...]}. A rung that cannot run is told
/// with its reason. Errors: of the run as it is.
Status climb_ladder(const settings::RunConfig& config, const profiling::ProfileSchedule& schedule,
                    const std::string& folder, bool json);

/// Below that a difference may be the machine's.
inline constexpr double kLeastGain = 0.02;

}  // namespace plimsoll::cli
