#include "strategy/offload_search.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "planner/report/budget.h"

namespace plimsoll::strategy {
namespace {

constexpr size_t kMostSizes = 4;
/// Strategies that fit by their estimates and that are planned, before estimates are trusted less.
constexpr size_t kMostPlanned = 8, kMostPlannedOfLarge = 3;
/// For models of at most so many blocks each room for early copies is compared, and more strategies are
/// planned.
constexpr int32_t kManyBlocks = 16;
/// Waiting for copies that is not worth another estimate, as a share of the kernels' time.
constexpr double kHiddenWait = 0.005;
/// Where plans pack worse than their estimates, the search repeats with what such packing leaves; in the end
/// it offloads more until the plan fits.
constexpr int kMostRounds = 3, kMostRepairs = 4;
/// With more offloaded the arena packs differently: by so much worse, and a little.
constexpr double kPackingMargin = 1.25, kPackingStep = 1.0 / 128;

class Search {
 public:
  Search(const OffloadChoices& choices, const EstimateStrategy& estimate, const PlanStrategy& plan)
      : choices_(choices), candidates_(choices), estimate_(estimate), plan_(plan) {
    const size_t count = std::min(choices.splits.size(), kMostSizes);
    for (size_t i = 0; i < count; ++i)
      splits_.push_back(choices.splits[count < 2 ? 0 : i * (choices.splits.size() - 1) / (count - 1)]);
  }

  Result<PlannedStep> operator()() {
    for (const OffloadAssignment& assignment : offload_assignments(choices_.places))
      if (auto planned = fastest_in(assignment)) return std::move(*planned);
    if (choices_.most_seconds < std::numeric_limits<double>::infinity())
      return Error{ErrorCode::kDoesNotFit, "offloading would not make any strategy faster"};
    packing_ = 0;  // how loosely others packed says nothing of the least, which is packed closely
    return least();
  }

 private:
  struct Found {
    Strategy strategy;
    double seconds = 0;
  };

  /// The fastest plan with what is offloaded there; nothing where none fits.
  std::optional<PlannedStep> fastest_in(const OffloadAssignment& assignment) {
    packing_ = 0;
    std::vector<Found> found;
    for (int i = 0; i < kMostRounds && may_fit(assignment); ++i) {
      std::vector<Found> better = fitting_strategies(assignment);
      std::erase_if(better, [&](const Found& f) { return f.seconds >= choices_.most_seconds; });
      if (better.empty()) break;
      std::ranges::stable_sort(better, {}, &Found::seconds);
      found = std::move(better);
      // What is next may pack better, and is not much slower.
      const size_t most = is_large() ? kMostPlannedOfLarge : kMostPlanned;
      for (size_t next = 0; next < std::min(found.size(), most); ++next) {
        auto planned = plan_(found[next].strategy);
        if (planned && planned->report.fits) return std::move(*planned);
        if (planned && next == 0) expect_packing_of(found[next].strategy, planned->report);
      }
    }
    for (const Found& f : found)
      if (auto planned = plan_fitting(f.strategy)) return planned;
    return std::nullopt;
  }

  /// From now on the search expects plans to pack as that one did, and a little worse.
  void expect_packing_of(const Strategy& strategy, const planner::PlanReport& planned) {
    const auto estimated = estimate_(strategy);
    if (!estimated || estimated->arena_bytes <= 0) return;
    const double more =
        static_cast<double>(planned.arena_bytes) / static_cast<double>(estimated->arena_bytes) - 1;
    packing_ = std::max(packing_, kPackingMargin * more) + kPackingStep;
  }

  /// As planner::excess_bytes, with what the packing is expected to add.
  [[nodiscard]] int64_t excess_of(const planner::PlanReport& report) const {
    if (report.budgets.empty()) return 0;
    const auto added = static_cast<int64_t>(packing_ * static_cast<double>(report.arena_bytes));
    int64_t excess = std::numeric_limits<int64_t>::min();
    for (const planner::Budget& budget : report.budgets) {
      const bool is_device = budget.bounded == planner::Bounded::kDevice ||
                             (report.device_in_process && budget.bounded == planner::Bounded::kProcess);
      const int64_t bytes = planner::bounded_bytes(report, budget.bounded) + (is_device ? added : 0);
      excess = std::max(excess, bytes - budget.bytes);
    }
    return excess;
  }

  /// What cannot be estimated does not fit.
  [[nodiscard]] bool fits(const Strategy& strategy) const {
    const auto report = estimate_(strategy);
    return report && excess_of(*report) <= 0;
  }

  /// Whether some strategy may: what is tried first, which is estimated in any case, or the least.
  [[nodiscard]] bool may_fit(const OffloadAssignment& assignment) const {
    const auto all = [&](const settings::BatchSplit& split, bool recompute_all) {
      return candidates_.with_all(candidates_.resident(split, recompute_all, kOnDemand), assignment);
    };
    return fits(all(splits_.front(), false)) || fits(all(splits_.back(), choices_.may_recompute));
  }

  /// Those that fit: of each split, order and room for early copies the fastest. None is tried whose kernels
  /// alone take longer than what was found; recomputation only adds kernels.
  [[nodiscard]] std::vector<Found> fitting_strategies(const OffloadAssignment& assignment) const {
    std::vector<Found> found;
    const double hidden = is_large() ? 1 + kHiddenWait : 1;
    const auto may_be_faster = [&](double kernels) {
      return kernels < choices_.most_seconds &&
             std::ranges::none_of(found, [&](const Found& f) { return f.seconds <= hidden * kernels; });
    };
    std::vector<double> kernels(splits_.size(), 0);  // at least
    for (const bool recompute_all : candidates_.recomputations())
      for (size_t i = 0; i < splits_.size(); ++i) {
        const auto start = [&](int64_t slack) {
          return candidates_.resident(splits_[i], recompute_all, slack);
        };
        if (!may_be_faster(kernels[i])) continue;
        const auto all = estimate_(candidates_.with_all(start(kOnDemand), assignment));
        if (!all) continue;
        kernels[i] = all->seconds_estimated - all->parts.parts[static_cast<size_t>(planner::Part::kCopies)];
        if (excess_of(*all) > 0) continue;
        for (const auto& order : offload_orders())
          for (const int64_t slack : {kSomeSlack, kNoSlack, kOnDemand}) {
            if (!may_be_faster(kernels[i])) break;
            if (find_fitting(start(slack), order, assignment, found) && is_large()) break;
          }
      }
    return found;
  }

  /// Offloads groups in that order, a block after the other: by halves the fewest with which the step fits.
  /// Where steps that do not fit take longer than one behind them, that one is passed over whether it fits or
  /// not: a larger budget, under which the first fits, would never come by it. All that fit join `found`;
  /// returns whether any does.
  bool find_fitting(const Strategy& strategy, std::span<const OffloadGroup> order,
                    const OffloadAssignment& assignment, std::vector<Found>& found) const {
    bool any = false;
    double floor = 0;
    const int32_t count = candidates_.num_steps(order);
    for (int32_t low = 0, high = count + 1; high - low > 1;) {
      // All of them come first: where they do not fit as a rule nothing does.
      const int32_t middle = high > count ? count : low + (high - low) / 2;
      const Strategy tried = candidates_.with_steps(strategy, order, assignment, middle);
      const auto report = estimate_(tried);
      const bool fits = report && excess_of(*report) <= 0;
      const double seconds = report ? report->seconds_estimated : floor;
      const bool is_passed_over = seconds < floor;
      if (fits && !is_passed_over) {
        const auto is_same = [&](const Found& f) { return f.strategy == tried; };
        if (std::ranges::none_of(found, is_same)) found.push_back({tried, seconds});
        any = true;
      }
      if (middle == count && !fits) break;
      (fits && !is_passed_over ? high : low) = middle;
      if (!fits) floor = std::max(floor, seconds);
    }
    return any;
  }

  /// Whether an estimate takes long; then strategies that wait little are not compared further.
  [[nodiscard]] bool is_large() const { return choices_.num_blocks > kManyBlocks; }

  /// The plan, with more offloaded where it packs worse than was expected.
  [[nodiscard]] std::optional<PlannedStep> plan_fitting(Strategy strategy) const {
    for (int i = 0; i <= kMostRepairs; ++i) {
      auto planned = plan_(strategy);
      if (planned && planned->report.fits) return std::move(*planned);
      if (!candidates_.offload_more(strategy, i)) break;
    }
    return std::nullopt;
  }

  /// The smallest micro-batch with all offloaded. Kept activations are offloaded too, so that recomputation
  /// does not always need less. Where it fits, copies are as early as they can be.
  Result<PlannedStep> least() const {
    std::optional<PlannedStep> best;
    std::optional<Error> error;
    for (const ir::MemorySpace space : choices_.places) {
      OffloadAssignment assignment;
      assignment.fill(space);
      for (const bool recompute_all : candidates_.recomputations())
        for (const int64_t slack : {kOnDemand, kNoSlack, kSomeSlack}) {
          Strategy strategy =
              candidates_.with_all(candidates_.resident(splits_.back(), recompute_all, slack), assignment);
          const auto estimated = estimate_(strategy);
          if (best && estimated && !may_be_better(*estimated, best->report)) continue;
          strategy.tolerance = 0;
          auto planned = plan_(strategy);
          if (!planned)
            error = planned.error();
          else if (!best || planner::is_better(planned->report, best->report))
            best = std::move(*planned);
        }
    }
    if (!best) return std::move(*error);
    return std::move(*best);
  }

  /// A plan may take less than its estimate: at best what is alive.
  [[nodiscard]] bool may_be_better(const planner::PlanReport& estimated,
                                   const planner::PlanReport& than) const {
    const int64_t excess = excess_of(estimated);
    if (!than.fits) return excess < planner::excess_bytes(than);
    const auto arena = static_cast<double>(estimated.arena_bytes);
    const auto packing = static_cast<int64_t>(arena - arena / estimated.offset_lower_bound_ratio);
    return excess <= packing && estimated.seconds_estimated < than.seconds_estimated;
  }

  double packing_ = 0;  ///< what it adds to an arena, as a share of the estimate's
  const OffloadChoices& choices_;
  OffloadCandidates candidates_;
  const EstimateStrategy& estimate_;
  const PlanStrategy& plan_;
  std::vector<settings::BatchSplit> splits_;
};

}  // namespace

Result<PlannedStep> choose_offload(const OffloadChoices& choices, const EstimateStrategy& estimate,
                                   const PlanStrategy& plan) {
  PLIMSOLL_CHECK(!choices.places.empty() && !choices.splits.empty(), "there is nothing to choose from");
  return Search(choices, estimate, plan)();
}

}  // namespace plimsoll::strategy
