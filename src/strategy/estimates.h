// Estimates of offload strategies: how much memory and time they would take, without planning them.
#pragma once

#include <vector>

#include "strategy/cached_planner.h"

namespace plimsoll::strategy {

/// Estimates of one search. Strategies that differ in what is offloaded alone share scheduled programs, of
/// which the few that were used last are kept. Each report is kept in the search's PlanCache.
class StrategyEstimates {
 public:
  /// `planner` outlives it.
  explicit StrategyEstimates(CachedPlanner& planner) : planner_(planner) {}

  /// As StrategyPlanner::estimate.
  Result<planner::PlanReport> operator()(const Strategy& strategy);

 private:
  struct Scheduled {
    Strategy strategy;  ///< with nothing offloaded
    bool streams_updates = false;
    planner::ScheduledPrograms programs;
  };
  Result<PlannedStep> estimate(const Strategy& strategy);
  /// The programs of that strategy, which are then the last of scheduled_.
  Result<planner::ScheduledPrograms*> scheduled(const Strategy& strategy);

  CachedPlanner& planner_;
  std::vector<Scheduled> scheduled_;  ///< the one that was used last comes last
};

}  // namespace plimsoll::strategy
