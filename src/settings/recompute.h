// memory.recompute, put to the passes.
#pragma once

#include "passes/pipeline.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// What is nearly free is computed again unless the setting is none. auto: nothing else, until the planner
/// has chosen.
void set_recompute(const RecomputeSettings& settings, passes::PipelineOptions& options);
/// What of a model is computed again: whole layers of all that it has, and parts of others.
struct RecomputedLayers {
  int64_t whole = 0, parts = 0, of_model = 0;
};
/// As the plan says it: "none", "cheap ops", "full", "every 2", "segments 4", "layers"; what auto has
/// chosen: "3 of 12 layers", "9 parts of layers", "3 layers + 2 parts".
std::string recompute_text(const RecomputeSettings& settings, const RecomputedLayers& chosen);

}  // namespace plimsoll::settings
