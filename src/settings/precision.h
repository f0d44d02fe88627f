// Passes the precision settings of the run file to the passes, and asks them for what only they know.
#pragma once

#include <string>

#include "base/result.h"
#include "passes/pipeline.h"
#include "planner/programs/step_programs.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// training.precision, its overrides and the residual stream, for the autocast pass.
void set_precision(const TrainingSettings& training, passes::PipelineOptions& options);

/// training.fp8 as the passes take it.
passes::Fp8Settings fp8_settings(const TrainingSettings& training);

/// How the loss scale moves; a static one neither grows nor falls.
ops::LossScaling loss_scaling(const LossScaleSettings& scale);

/// Every override has matched in some program. Errors: kInvalidArgument, which names the weight of which the
/// pattern names a part (q_proj: qkv_proj), else the op or layer nearest to the pattern.
Status check_overrides_used(const planner::TrainingPrograms& programs, const models::Model& model,
                            const TrainingSettings& training);

}  // namespace plimsoll::settings
