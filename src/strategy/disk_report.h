// The plan's line of the disk: checkpoints, final/, tokenized data, what is offloaded there.
#pragma once

#include "models/model.h"
#include "passes/session_plan.h"
#include "planner/report/report.h"
#include "settings/run_config.h"

namespace plimsoll::strategy {

/// Of a training. Tokenized data is a guess from the sizes of texts that lie there: a token for four bytes.
planner::DiskReport disk_report(const settings::RunConfig& config, const io::ConfigJson& model_config,
                                const models::Model& model, const passes::SessionPlan& session);

}  // namespace plimsoll::strategy
