// Plans and estimates of strategies, each made once: a StrategyPlanner beside a PlanCache.
#pragma once

#include <optional>
#include <vector>

#include "strategy/plan_cache.h"
#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

class CachedPlanner {
 public:
  /// `cache` outlives it. `overlaps`: all strategies have overlaps_ranks.
  CachedPlanner(const RunScope& scope, PlanCache& cache, bool overlaps = false)
      : planner_(scope, cache.programs(), scope.options.request != PlanRequest::kFit),
        cache_(&cache),
        overlaps_(overlaps) {}

  /// The plan with its facts. One that was planned before comes without its programs. `estimated` as
  /// StrategyPlanner::plan has it.
  Result<PlannedStep> plan(const Strategy& strategy, std::vector<passes::Program> estimated = {});
  /// The same without facts, which take time and which only a search over recomputation asks for.
  Result<PlannedStep> plan_without_facts(const Strategy& strategy);
  /// The plan, or the estimate of one that exceeds the budgets by more than `goal` bytes: the least that it
  /// can take says so already, in half the time. It asks for the estimate of a cached plan as well, so that
  /// what is found does not depend on what was planned for another budget.
  Result<PlannedStep> plan_within(const Strategy& strategy, int64_t goal);
  /// The estimate with its facts, without programs.
  Result<PlannedStep> estimate_with_facts(const Strategy& strategy);

  [[nodiscard]] StrategyPlanner& planner() { return planner_; }
  [[nodiscard]] const RunScope& scope() const { return planner_.scope(); }
  [[nodiscard]] PlanCache& cache() { return *cache_; }

 private:
  /// A copy of what the cache has, compared with the budgets as they are now; nothing where it has none.
  std::optional<PlannedStep> compared(const PlannedStep* cached) const;
  /// A new estimate, with its programs; it is added to the cache.
  Result<PlannedStep> estimate(const Strategy& strategy);

  [[nodiscard]] Strategy with_exchanges(Strategy strategy) const {
    strategy.overlaps_ranks = strategy.overlaps_ranks || overlaps_;
    return strategy;
  }

  StrategyPlanner planner_;
  PlanCache* cache_;
  bool overlaps_ = false;
};

}  // namespace plimsoll::strategy
