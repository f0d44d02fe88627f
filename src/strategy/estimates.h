// Estimates of strategies: what they would take, about, without planning them whole.
#pragma once

#include <memory>
#include <vector>

#include "strategy/plan_cache.h"
#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// StrategyEstimates of one run. Ways that differ in what lies elsewhere alone share their graphs, of which
/// few are kept. What has been sketched is remembered in options.known.
class StrategyEstimates {
 public:
  /// All outlive it; options.known is not null.
  StrategyEstimates(const settings::RunConfig& config, const Prepared& prepared,
                    const runtime::Target& target, const PrepareOptions& options)
      : config_(config), prepared_(prepared), target_(target), options_(options) {}

  /// As estimate_strategy.
  Result<planner::PlanReport> operator()(const Strategy& strategy);

 private:
  struct Scheduled {
    Strategy strategy;  ///< with nothing elsewhere
    bool streams_updates = false;
    std::unique_ptr<planner::ScheduledPrograms> programs;
  };
  planner::ScheduledPrograms& scheduled(const Strategy& strategy);

  const settings::RunConfig& config_;
  const Prepared& prepared_;
  const runtime::Target& target_;
  const PrepareOptions& options_;
  std::vector<Scheduled> scheduled_;  ///< the one that was used last comes last
};

}  // namespace plimsoll::strategy
