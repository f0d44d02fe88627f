// The report of a strategy's plan: memory beside the programs, the work of a step, budgets.
#pragma once

#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// Report of programs that were built with those options. Its budgets are not filled yet.
planner::PlanReport report_of(const RunScope& scope, const Strategy& strategy,
                              const planner::StepOptions& options, const planner::TrainingPrograms& programs);

/// Compares a report of that strategy with the budgets as they are now.
void compare_with_budgets(const RunScope& scope, const Strategy& strategy, planner::PlanReport& report);

/// Of the one host buffer: reading data, summing dumped gradients.
int64_t scratch_bytes(const settings::RunConfig& config, const Prepared& prepared);

void describe_buckets(const preprocessing::Buckets& buckets, planner::PlanReport& report);

}  // namespace plimsoll::strategy
