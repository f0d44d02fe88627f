// memory.recompute, put to the passes.
#pragma once

#include "passes/pipeline.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// What is nearly free is computed again unless the setting is none. auto: nothing else, until the planner
/// has chosen.
void set_recompute(const RecomputeSettings& settings, passes::PipelineOptions& options);
/// As the plan says it: "none", "nearly free", "full", "every 2", "segments 4", "layers"; what auto has
/// chosen: "12 layers".
std::string recompute_text(const RecomputeSettings& settings, const std::vector<std::string>& chosen);

}  // namespace plimsoll::settings
