// memory.offload: auto. Chooses what to offload when the run does not fit, or when offloading is faster than
// the alternatives: which classes, of how many layers, with which split of the batch.
#pragma once

#include <functional>

#include "strategy/offload_candidates.h"

namespace plimsoll::strategy {

/// The report of an estimate (StrategyPlanner::estimate), and the plan.
using EstimateStrategy = std::function<Result<planner::PlanReport>(const Strategy& strategy)>;
using PlanStrategy = std::function<Result<PlannedStep>(const Strategy& strategy)>;

/// The plan that takes least time, by the estimate, of those that fit. For each micro-batch that fits with
/// all offloaded, without recomputation and with all of it, the search offloads class after class, layer by
/// layer, until the step fits, in two orders, with room for early copies and without. These steps do not
/// depend on the budget, so that a larger budget is not slower. Estimates tell strategies apart, and few are
/// planned; what cannot be planned does not fit. Where nothing that fits takes less than most_seconds,
/// kDoesNotFit. Where most_seconds is infinite, the plan that needs least memory instead, which does not
/// depend on the budgets: the least budget that a message names fits, and a byte less does not.
/// Deterministic. Precondition: choices.places is not empty.
Result<PlannedStep> choose_offload(const OffloadChoices& choices, const EstimateStrategy& estimate,
                                   const PlanStrategy& plan);

}  // namespace plimsoll::strategy
