#include "strategy/cached_planner.h"

#include <utility>

#include "planner/recompute/recompute_fit.h"
#include "planner/report/budget.h"
#include "settings/offload.h"

namespace plimsoll::strategy {

std::optional<PlannedStep> CachedPlanner::compared(const PlannedStep* cached) const {
  if (cached == nullptr) return std::nullopt;
  PlannedStep planned = *cached;
  planner_.compare_with_budgets(planned.strategy, planned.report);
  return planned;
}

Result<PlannedStep> CachedPlanner::plan(const Strategy& given, std::vector<passes::Program> estimated) {
  const Strategy strategy = with_exchanges(given);
  if (auto cached = compared(cache_->find(strategy))) return std::move(*cached);
  PLIMSOLL_ASSIGN(PlannedStep planned, planner_.plan(strategy, std::move(estimated)));
  planned.facts = planner_.facts_of(planned);
  cache_->add(planned);
  return planned;
}

Result<PlannedStep> CachedPlanner::plan_without_facts(const Strategy& given) {
  const Strategy strategy = with_exchanges(given);
  if (auto cached = compared(cache_->find(strategy))) return std::move(*cached);
  PLIMSOLL_ASSIGN(PlannedStep planned, planner_.plan(strategy));
  cache_->add(planned);
  return planned;
}

Result<PlannedStep> CachedPlanner::estimate(const Strategy& strategy) {
  PLIMSOLL_ASSIGN(PlannedStep estimated, planner_.estimate(strategy));
  estimated.facts = planner_.facts_of(estimated);
  cache_->add_estimate(estimated);
  return estimated;
}

Result<PlannedStep> CachedPlanner::estimate_with_facts(const Strategy& given) {
  const Strategy strategy = with_exchanges(given);
  if (auto cached = compared(cache_->find_estimate(strategy, /*with_facts=*/true))) return std::move(*cached);
  PLIMSOLL_ASSIGN(PlannedStep estimated, estimate(strategy));
  estimated.programs = {};
  return estimated;
}

Result<PlannedStep> CachedPlanner::plan_within(const Strategy& given, int64_t goal) {
  const Strategy strategy = with_exchanges(given);
  if (goal == planner::kAnyExcess) return plan(strategy);
  std::vector<passes::Program> programs;
  std::optional<PlannedStep> estimated = compared(cache_->find_estimate(strategy));
  if (!estimated) {
    PLIMSOLL_ASSIGN(estimated, estimate(strategy));
    programs = std::move(estimated->programs.session.programs);
    estimated->programs = {};
  }
  if (planner::excess_bytes(estimated->report) > goal) return std::move(*estimated);
  if (settings::offload_options(scope().config).any()) programs.clear();
  return plan(strategy, std::move(programs));
}

}  // namespace plimsoll::strategy
