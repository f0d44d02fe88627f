// memory.offload: auto. Chooses which state to offload when a run does not fit, or when offloading is faster
// than the alternatives: of which classes, of how many layers, and with which split of the batch.
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// Where it may lie, the quickest to reach first, and how a step is split.
struct OffloadChoices {
  std::vector<ir::MemorySpace> places = {};
  std::vector<settings::BatchSplit> splits =
      {};                      ///< the largest micro-batch first; at most four of them are looked at
  bool may_recompute = false;  ///< every layer, and least chunks of the loss
  bool in_backward = false;    ///< the updates
  int32_t num_blocks = 0;      ///< of the model
  /// What takes as long or longer, by the estimate, is not wanted; infinite: whatever fits is.
  double most_seconds = std::numeric_limits<double>::infinity();
};

/// Empty places: what is offloaded is not the planner's to say.
OffloadChoices offload_choices(const settings::RunConfig& config, const PrepareOptions& options,
                               const Prepared& prepared, std::vector<settings::BatchSplit> splits);

/// About a way's plan, as estimate_strategy has it; the plan.
using SketchOffload = std::function<Result<planner::PlanReport>(const Strategy& strategy)>;
using PlanOffload = std::function<Result<PlannedStep>(const Strategy& strategy)>;

/// The plan that takes least time, by the estimate, of those that fit: of each micro-batch that fits with all
/// elsewhere, as it is and with everything computed again, classes go elsewhere layer by layer, one after the
/// other, until it fits, in two orders, with room for early copies and without. What is looked at are steps
/// that do not depend on the budget, so that a larger one is not slower.
/// Where nothing that fits takes less than most_seconds, kDoesNotFit; where that is no bound, the one that
/// needs least, which does not depend on the budgets: so that the least that is named fits, and a byte less
/// does not. Ways are told apart by sketches, a few are planned. What cannot be planned does not fit.
/// Deterministic. Precondition: choices.places is not empty.
Result<PlannedStep> choose_offload(const OffloadChoices& choices, const SketchOffload& estimate,
                                   const PlanOffload& plan);

}  // namespace plimsoll::strategy
