#include "strategy/rank_search.h"

#include <algorithm>
#include <utility>

#include "planner/report/budget.h"
#include "planner/report/report_parts.h"
#include "settings/distributed.h"
#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {
namespace {

/// What a step that takes more memory may take of the time of one that takes less.
constexpr double kQuicker = 0.999;
/// Of a step's time: what is not worth a search.
constexpr double kLeastGain = 0.002;
/// At numbers of blocks, for the most that fit.
constexpr int kLooks = 3;

class RankSearch {
 public:
  RankSearch(const RunScope& scope, CachedPlanner& planner, PlannedStep best)
      : scope_(scope), planner_(planner), best_(std::move(best)) {}

  PlannedStep operator()() {
    overlap(!best_.strategy.overlaps_ranks);
    if (!may_keep_gathered()) return std::move(best_);
    Result<PlannedStep> full = all_recomputed();
    take(gathered(best_));
    // A byte may save more time in gathered parameters than in a layer that is not recomputed.
    if (full && full->report.fits && full->report.seconds_estimated - gain_ < best_.report.seconds_estimated)
      take(gathered(*full));
    return std::move(best_);
  }

 private:
  /// Takes the same plan with or without, where it is quicker, or no slower and smaller.
  void overlap(bool overlaps) {
    if (!scope_.prepared.costs->network_is_apart()) return;
    Strategy strategy = best_.strategy;
    strategy.overlaps_ranks = overlaps;
    const double most = overlaps ? kQuicker : 1 / kQuicker;
    const auto is_better = [&](const Result<PlannedStep>& other) {
      return other && other->report.fits &&
             other->report.seconds_estimated < most * best_.report.seconds_estimated;
    };
    if (!is_better(planner_.estimate_with_facts(strategy))) return;
    best_.programs = {};  // several plans at once would be memory that none of them counts
    auto other = planner_.plan(strategy);
    if (is_better(other)) best_ = std::move(*other);
  }

  /// Whether parameters that ranks share may stay gathered from forward to backward, and that saves time.
  bool may_keep_gathered() {
    if (!settings::shares_parameters(scope_.config.distributed) ||
        scope_.options.request == PlanRequest::kFit || blocks() == 0)
      return false;
    const auto all = planner_.estimate_with_facts(with_gathered(best_.strategy, blocks()));
    if (!all) return false;
    gain_ = best_.report.seconds_estimated - all->report.seconds_estimated;
    return gain_ > kLeastGain * best_.report.seconds_estimated;
  }
  [[nodiscard]] int32_t blocks() const { return scope_.prepared.model->num_blocks(); }
  static Strategy with_gathered(Strategy strategy, int32_t blocks) {
    strategy.gathered_blocks = blocks;
    return strategy;
  }

  /// The same, which holds least beside gathered parameters; an error where nothing is recomputed.
  Result<PlannedStep> all_recomputed() {
    if (best_.strategy.recomputed.empty()) return Error{.what = "no layer is recomputed"};
    Strategy strategy = best_.strategy;
    strategy.recomputed = {};
    strategy.recompute_all = true;
    return planner_.estimate_with_facts(strategy);
  }

  /// The plan with parameters of as many blocks gathered as memory is left for, which is sought between what
  /// none and all exceed the budgets by.
  Result<PlannedStep> gathered(const PlannedStep& from) {
    struct Bound {
      int32_t blocks = 0;
      int64_t excess = 0;
    };
    const auto excess = [&](int32_t count) -> Result<int64_t> {
      PLIMSOLL_ASSIGN(const PlannedStep found,
                      planner_.estimate_with_facts(with_gathered(from.strategy, count)));
      return planner::excess_bytes(found.report);
    };
    PLIMSOLL_ASSIGN(const int64_t of_all, excess(blocks()));
    Bound fits{0, planner::excess_bytes(from.report)}, exceeds{blocks(), of_all};
    if (of_all <= 0) fits = exceeds;
    for (int look = 0; look < kLooks && exceeds.blocks - fits.blocks > 1; ++look) {
      const double part =
          static_cast<double>(-fits.excess) / static_cast<double>(exceeds.excess - fits.excess);
      const auto steps = static_cast<int32_t>(part * (exceeds.blocks - fits.blocks));
      const int32_t count = std::clamp(fits.blocks + steps, fits.blocks + 1, exceeds.blocks - 1);
      PLIMSOLL_ASSIGN(const int64_t of_count, excess(count));
      (of_count <= 0 ? fits : exceeds) = {count, of_count};
    }
    best_.programs = {};  // several plans at once would be memory that none of them counts
    for (int look = 0; look < kLooks && look < fits.blocks;
         ++look) {  // a plan may take more than its estimate
      auto planned = planner_.plan_within(with_gathered(from.strategy, fits.blocks - look), 0);
      if (!planned || planned->report.fits) return planned;
    }
    return Error{.what = "no memory is left"};
  }

  void take(Result<PlannedStep> other) {
    const bool is_faster =
        other && other->report.fits && other->report.seconds_estimated < best_.report.seconds_estimated;
    if (is_faster) best_ = std::move(*other);
  }

  const RunScope& scope_;
  CachedPlanner& planner_;
  PlannedStep best_;
  double gain_ = 0;  ///< seconds that gathered parameters of all blocks save
};

}  // namespace

bool may_overlap(const RunScope& scope) {
  return scope.config.distributed.num_ranks() > 1 && scope.options.purpose == Purpose::kTrain &&
         scope.options.request != PlanRequest::kFit && scope.prepared.costs->network_is_apart();
}

/// What this plan hides would be exposed again, and at most what it recomputes saved. That is its part of the
/// operations, or twice as much, as rates of ops differ.
bool may_lose_by_overlap(const PlannedStep& overlapped) {
  const planner::PlanReport& r = overlapped.report;
  if (!r.fits) return true;
  const double computed = r.seconds_estimated - planner::exposed_seconds(r);
  return 2 * computed * r.recompute_flops > planner::hidden_seconds(r) * (r.flops + r.recompute_flops);
}

PlannedStep with_rank_exchanges(const RunScope& scope, CachedPlanner& planner, PlannedStep best) {
  const bool has_others =
      scope.config.distributed.num_ranks() > 1 && scope.options.purpose == Purpose::kTrain;
  if (!has_others || !best.report.fits) return best;
  return RankSearch(scope, planner, std::move(best))();
}

}  // namespace plimsoll::strategy
