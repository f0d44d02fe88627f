// A first run file for an image model and images, as propose_run has those of language models.
#pragma once

#include <string>
#include <vector>

#include "analysis/run_draft.h"
#include "base/result.h"
#include "io/model_config.h"
#include "settings/run_config.h"

namespace plimsoll::analysis {

/// Task, data and training for images; their folders and tables are looked at, the images are not. `data`: as
/// it stands in the run file, in YAML. Errors: kBadData of the data.
Status draft_images(RunDraft& draft, const settings::RunConfig& config, const io::ConfigJson& model,
                    const std::string& data);

}  // namespace plimsoll::analysis
