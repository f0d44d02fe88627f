// plimsoll profile --formats: what number formats would do to the operands of this run's linear layers.
#pragma once

#include <string>

#include "profiling/profile.h"
#include "settings/run_config.h"

namespace plimsoll::cli {

/// Trains as many steps as the schedule has, and rounds inputs, weights and gradients of the last one, layer
/// by layer, to each format: the share that becomes 0, what is clipped, signal to noise. `folder` holds the
/// operands meanwhile.
Status profile_formats(const settings::RunConfig& config, const profiling::ProfileSchedule& schedule,
                       const std::string& folder, bool json);

}  // namespace plimsoll::cli
