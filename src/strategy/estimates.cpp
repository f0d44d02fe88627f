#include "strategy/estimates.h"

#include <algorithm>
#include <utility>

namespace plimsoll::strategy {

Result<planner::PlanReport> StrategyEstimates::operator()(const Strategy& strategy) {
  if (const PlannedStep* known = options_.known->find_estimate(strategy)) {
    planner::PlanReport report = known->report;
    hold_against_budgets(config_, prepared_, strategy, target_, options_, report);
    return report;
  }
  PLIMSOLL_ASSIGN(PlannedStep estimated,
                  estimate_strategy(config_, prepared_, strategy, target_, options_, &scheduled(strategy)));
  options_.known->add_estimate(estimated);
  return std::move(estimated.report);
}

planner::ScheduledPrograms& StrategyEstimates::scheduled(const Strategy& strategy) {
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
    scheduled_.push_back({std::move(plain), streams, std::make_unique<planner::ScheduledPrograms>()});
  }
  return *scheduled_.back().programs;
}

}  // namespace plimsoll::strategy
