// Checks constraints between the settings of a run file after all have been read.
#pragma once

#include <vector>

#include "base/result.h"
#include "settings/effect.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// What follows from the task before any setting is judged by another: only language models
/// have several documents in a row. Errors: kInvalidArgument.
Status settle_task(RunConfig& config, const GivenSettings& given);

/// What must hold between settings; derives what follows from them. Errors (kInvalidArgument): all there are.
std::vector<Error> check_run(RunConfig& config, const GivenSettings& given);

/// data.images: as many numbers as channels, augmentations that there are. Errors: kInvalidArgument.
Status check_images(const RunConfig& config);

/// What the run lacks for its use, an error (kInvalidArgument) each.
std::vector<Error> missing_for(const RunConfig& config, RunUse use);

}  // namespace plimsoll::settings
