#include "strategy/estimates.h"

#include <algorithm>
#include <utility>

namespace plimsoll::strategy {

Result<planner::PlanReport> StrategyEstimates::operator()(const Strategy& strategy) {
  if (const PlannedStep* cached = planner_.cache().find_estimate(strategy)) {
    planner::PlanReport report = cached->report;
    planner_.planner().compare_with_budgets(strategy, report);
    return report;
  }
  PLIMSOLL_ASSIGN(PlannedStep estimated, estimate(strategy));
  planner_.cache().add_estimate(estimated);
  return std::move(estimated.report);
}

Result<PlannedStep> StrategyEstimates::estimate(const Strategy& strategy) {
  if (!planner_.planner().may_schedule()) return planner_.planner().estimate(strategy);
  PLIMSOLL_ASSIGN(planner::ScheduledPrograms * programs, scheduled(strategy));
  return planner_.planner().estimate(strategy, *programs);
}

Result<planner::ScheduledPrograms*> StrategyEstimates::scheduled(const Strategy& strategy) {
  constexpr size_t kMost = 3;  // some 20 MiB each of a model of 80 layers
  Strategy plain = strategy;
  plain.offload = {};
  const bool streams = strategy.offload.streams_updates();
  const auto found = std::ranges::find_if(
      scheduled_, [&](const Scheduled& s) { return s.strategy == plain && s.streams_updates == streams; });
  if (found != scheduled_.end()) {
    std::rotate(found, found + 1, scheduled_.end());
  } else {
    if (scheduled_.size() == kMost) scheduled_.erase(scheduled_.begin());
    PLIMSOLL_ASSIGN(planner::ScheduledPrograms programs, planner_.planner().schedule(strategy));
    scheduled_.push_back({std::move(plain), streams, std::move(programs)});
  }
  return &scheduled_.back().programs;
}

}  // namespace plimsoll::strategy
