// The search over splits of the batch, chunks of the loss and recomputed layers, with nothing offloaded but
// what the settings say.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "planner/recompute/recompute_fit.h"
#include "strategy/cached_planner.h"

namespace plimsoll::strategy {

class SplitSearch {
 public:
  /// `cache` outlives it. `overlaps` as CachedPlanner has it.
  SplitSearch(const RunScope& scope, PlanCache& cache, bool overlaps = false)
      : planner_(scope, cache, overlaps), finds_least_(scope.options.request != PlanRequest::kFit) {}

  /// Of the plans that fit, the one that takes least time by the estimate; of an evaluation the largest
  /// micro-batch. Where none fits, the plan that needs least memory. The plan comes without its programs
  /// where the search has dropped them. Errors: as StrategyPlanner::plan.
  Result<PlannedStep> operator()();

  /// What a step takes at least, by estimates of the splits with nothing given up for memory; 0: none was
  /// made.
  [[nodiscard]] double least_seconds() const { return least_seconds_; }
  /// All that were planned, in that order.
  [[nodiscard]] const std::vector<planner::Alternative>& considered() const { return considered_; }

 private:
  static constexpr double kAnySeconds = std::numeric_limits<double>::infinity();

  /// A split, and what it takes at least where layers are recomputed; infinite: they are not.
  struct Recomputed {
    PlannedStep estimate;
    double least_seconds = 0;
  };

  /// The plan that takes least time of those that were added and fit.
  struct Fastest {
    std::optional<PlannedStep> found = {};
    [[nodiscard]] double seconds() const { return found ? found->report.seconds_estimated : kAnySeconds; }
    /// What cannot be planned does not fit.
    void add(Result<PlannedStep> other) {
      if (other && other->report.fits && other->report.seconds_estimated < seconds())
        found = std::move(*other);
    }
    /// Several plans at once would be memory that none of them counts.
    void drop_programs() {
      if (found) found->programs = {};
    }
  };

  Result<PlannedStep> largest_split(const std::vector<settings::BatchSplit>& splits);
  Result<PlannedStep> with_other_split(PlannedStep best, const settings::BatchSplit& split);
  Result<std::optional<PlannedStep>> fastest_that_fits(const std::vector<settings::BatchSplit>& splits);
  Status add_recomputed(std::vector<PlannedStep> estimated, Fastest& best);
  std::vector<Recomputed> by_least_seconds(std::vector<PlannedStep> estimated);
  Result<std::vector<PlannedStep>> estimates_by_time(const std::vector<settings::BatchSplit>& splits);
  Result<PlannedStep> estimate_plain(const settings::BatchSplit& split, bool in_backward);
  Result<PlannedStep> refuse_clipping();
  Result<PlannedStep> plan(const Strategy& strategy);
  Result<PlannedStep> plan_within(const Strategy& strategy, int64_t goal);
  Result<PlannedStep> plan_placed(Strategy strategy);
  Result<PlannedStep> plan_fitting(Strategy strategy, bool estimates = false);
  Result<PlannedStep> with_least_chunks(PlannedStep planned);
  Result<PlannedStep> with_recompute(PlannedStep planned);
  Result<PlannedStep> recompute_to_fit(PlannedStep plain, double most_seconds = kAnySeconds);
  Result<PlannedStep> with_largest_chunks(PlannedStep chosen);
  auto recompute_fit(const PlannedStep& plain);
  [[nodiscard]] bool updates_are(settings::OptimizerInBackward word) const;
  [[nodiscard]] bool places_updates(const Strategy& strategy) const;
  Result<PlannedStep> considered(Result<PlannedStep> planned);

  CachedPlanner planner_;
  bool finds_least_;
  std::vector<planner::Alternative> considered_;
  double least_seconds_ = 0;
};

}  // namespace plimsoll::strategy
