// The plan's line of the disk: checkpoints, final/, tokenized data, what is offloaded there.
#pragma once

#include "models/model.h"
#include "passes/session_plan.h"
#include "planner/report.h"
#include "settings/run_config.h"

namespace plimsoll::train {

/// Of a training. Tokenized data is a guess from the sizes of texts that lie there: a token for four bytes.
planner::DiskReport disk_report(const RunConfig& config, const ConfigJson& model_config,
                                const models::Model& model, const passes::SessionPlan& session);

}  // namespace plimsoll::train
