// Chooses the strategy of a step within its budget: batch split, recomputation, chunks of the loss head.
#pragma once

#include <vector>

#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// Of the plans that fit, the one that takes least time by the estimate: of each split of the batch, with
/// chunks of the loss, layers computed again and classes elsewhere as the settings leave open. Of an
/// evaluation, the largest micro-batch that fits. Where nothing fits, the plan that needs least. More memory
/// is not slower, but where the disk, used where nothing else fits, gives way. `considered` gets all that
/// were planned, the one that is returned among them. Errors: as plan_strategy.
Result<PlannedStep> choose_plan(const settings::RunConfig& config, const Prepared& prepared,
                                const runtime::Target& target, const PrepareOptions& options,
                                std::vector<planner::Alternative>& considered);

}  // namespace plimsoll::strategy
