// From the settings of a run and a strategy to what its programs are built by.
#pragma once

#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// The options of that strategy's programs, with that offloaded. `finds_least` false: see StrategyPlanner.
planner::StepOptions step_options(const RunScope& scope, const Strategy& strategy,
                                  const passes::OffloadOptions& offload, bool finds_least);

/// memory.recompute as that strategy has it.
settings::RecomputeSettings recompute_of(const settings::RunConfig& config, const Strategy& strategy);

/// The optimizer of the run, as its program has it.
optimizers::OptimizerOptions optimizer_options(const settings::RunConfig& config);

/// Whether weights that are quantised, or rounded by kernels of their own, may lie in memory for a whole
/// step: not where ranks share the parameters or the run's caller may change weights within a step.
bool may_keep_weight_copies(const RunScope& scope);

/// Whether the caller of a library's session may give a step several parts and read gradients: not where the
/// settings of the plan say one part (training.gradient_accumulation_steps 1).
bool caller_accumulates(const settings::RunConfig& config);

/// Whether a step's tensors are dumped.
bool dumps_steps(const settings::RunConfig& config);

}  // namespace plimsoll::strategy
