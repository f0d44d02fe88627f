// Chooses how a step runs within its budget: the split of the batch, what is recomputed, the chunks of the
// loss and what is offloaded.
#pragma once

#include <vector>

#include "strategy/plan_cache.h"
#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// The plan, and all that were planned for it, that one among them.
struct ChosenPlan {
  PlannedStep step;
  std::vector<planner::Alternative> considered = {};
};

/// Of the plans that fit, the one that takes least time by the estimate: of each split of the batch, with
/// chunks of the loss, recomputed layers and offloaded classes as the settings leave open. Of an evaluation,
/// the largest micro-batch that fits. Where nothing fits, the plan that needs least memory. More memory is
/// not slower, except where the disk, used where nothing else fits, gives way. Errors: as
/// StrategyPlanner::plan.
Result<ChosenPlan> choose_plan(const RunScope& scope, PlanCache& cache);

}  // namespace plimsoll::strategy
