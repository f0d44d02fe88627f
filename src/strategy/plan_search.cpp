#include "strategy/plan_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/programs/finish_program.h"
#include "planner/report/budget.h"
#include "planner/report/why.h"
#include "settings/offload.h"
#include "settings/optimizer_in_backward.h"
#include "strategy/estimates.h"
#include "strategy/offload_search.h"
#include "strategy/rank_search.h"
#include "strategy/split_choices.h"
#include "strategy/split_search.h"
#include "strategy/step_options.h"

namespace plimsoll::strategy {
namespace {

/// Bytes that the device has all the time: what the states take, without accumulators.
int64_t state_bytes(const planner::PlanReport& report) {
  int64_t bytes = 0;
  for (const auto& [name, of_class] : report.classes)
    if (name == "parameters" || name == "master_weights" || name == "optimizer_state") bytes += of_class;
  return bytes;
}

/// Whether no strategy without offload can fit, because what every one of them keeps does not.
bool states_exceed(const planner::PlanReport& report) {
  return std::ranges::any_of(report.budgets, [&](const planner::Budget& budget) {
    const bool is_device = budget.bounded == planner::Bounded::kDevice ||
                           (report.device_in_process && budget.bounded == planner::Bounded::kProcess);
    return is_device && state_bytes(report) > budget.bytes;
  });
}

/// Of the pool whose budget is exceeded most.
int64_t most_bytes(const planner::PlanReport& report) {
  const auto over = [&](const planner::Budget& b) { return bounded_bytes(report, b.bounded) - b.bytes; };
  return bounded_bytes(report, std::ranges::max_element(report.budgets, {}, over)->bounded);
}

/// The search without offload and the search with it, and which of them is needed.
class PlanSearch {
 public:
  PlanSearch(const RunScope& scope, PlanCache& cache)
      : scope_(scope),
        planner_(scope, cache),
        estimate_(planner_),
        resident_(scope, cache, may_overlap(scope)),
        splits_(candidate_splits(training_of(scope), in_backward() || keeps_batch_whole(scope))),
        choices_(offload_choices(scope, splits_)),
        may_offload_(!choices_.places.empty() && finds_least()) {}

  Result<ChosenPlan> operator()() {
    PLIMSOLL_TRY(look_at_states());
    // Only whether it fits is asked, and the states alone do not.
    if (exceeding_ && scope_.options.request == PlanRequest::kFit)
      return ChosenPlan{{first_strategy(), {}, std::move(*exceeding_)}};
    if (!exceeding_ || !may_offload_) {
      PLIMSOLL_TRY(search_resident());
    }
    bound_offload();
    if (!choices_.places.empty()) PLIMSOLL_TRY(search_offload());
    if (best_ && may_keep_weight_copies(scope_)) keep_weight_copies();
    if (best_) best_ = with_rank_exchanges(scope_, planner_, std::move(*best_));
    PLIMSOLL_ASSIGN(PlannedStep step, finished(std::move(*best_)));
    std::vector<planner::Alternative> considered = resident_.considered();
    if (offloaded_) considered.push_back(*offloaded_);
    return ChosenPlan{std::move(step), std::move(considered)};
  }

 private:
  [[nodiscard]] bool finds_least() const { return scope_.options.request != PlanRequest::kFit; }
  [[nodiscard]] bool in_backward() const {
    return scope_.config.memory.optimizer_in_backward == settings::OptimizerInBackward::kTrue;
  }
  [[nodiscard]] Strategy first_strategy() const {
    Strategy first{splits_.front()};
    first.optimizer_in_backward = in_backward();
    return first;
  }

  /// Where the states alone do not fit, no strategy without offload does.
  Status look_at_states() {
    if (scope_.options.purpose != Purpose::kTrain || !(may_offload_ || !finds_least()) ||
        settings::offload_options(scope_.config).any() ||
        (in_backward() && clipping_contradicts(scope_.config)))
      return Ok{};
    auto report = estimate_(first_strategy());
    if (report && states_exceed(*report)) exceeding_ = std::move(*report);
    return Ok{};
  }

  Status search_resident() {
    PLIMSOLL_ASSIGN(best_, resident_());
    if (!may_overlap(scope_) || !may_lose_by_overlap(*best_)) return Ok{};
    best_->programs = {};  // several plans at once would be memory that none of them counts
    auto plain = SplitSearch(scope_, planner_.cache())();
    if (plain && planner::is_better(plain->report, best_->report)) best_ = std::move(*plain);
    return Ok{};
  }

  /// A step that fits leaves offload what is faster. A disk's writes are not spent on that; nor is anything
  /// tried where no step can be faster.
  void bound_offload() {
    if (best_ && best_->report.fits) {
      choices_.most_seconds = best_->report.seconds_estimated;
      std::erase(choices_.places, ir::MemorySpace::kDisk);
      if (resident_.least_seconds() >= choices_.most_seconds) choices_.places.clear();
      // Several plans at once would be memory that none of them counts.
      if (!choices_.places.empty()) best_->programs = {};
    } else if (!may_offload_) {
      choices_.places.clear();
    }
  }

  Status search_offload() {
    auto offloaded = choose_offload(
        choices_, [&](const Strategy& strategy) { return estimate_(strategy); },
        [&](const Strategy& strategy) { return planner_.plan_without_facts(strategy); });
    const bool fits = offloaded && offloaded->report.fits;
    const bool may_be_less =
        !offloaded || !exceeding_ || state_bytes(*exceeding_) < most_bytes(offloaded->report);
    if (!best_ && !fits && may_be_less) PLIMSOLL_TRY(search_resident());
    if (offloaded && (!best_ || planner::is_better(offloaded->report, best_->report))) {
      best_ = std::move(*offloaded);
      offloaded_ = planner::alternative_of(best_->report);
    }
    return Ok{};
  }

  /// Takes what memory is left for quantised or rounded weights: a byte for anything else, such as a layer
  /// that is not recomputed, saves far more time. A plan may also be smaller with them, where micro-batches
  /// and backward would each hold copies of their own.
  void keep_weight_copies() {
    Strategy strategy = best_->strategy;
    strategy.keeps_weight_copies = true;
    best_->programs = {};  // several plans at once would be memory that none of them counts
    auto kept = planner_.plan(strategy);
    const auto is_better = [&](const planner::PlanReport& with, const planner::PlanReport& without) {
      return with.fits && (!without.fits || with.seconds_estimated < without.seconds_estimated);
    };
    if (kept && is_better(kept->report, best_->report)) best_ = std::move(*kept);
  }

  /// With programs where they are wanted: the cache keeps no programs. What is only compared
  /// with others is not run; what is run is verified. The text that --dump-ir leaves is of the plan that
  /// runs.
  Result<PlannedStep> finished(PlannedStep planned) {
    const PrepareOptions& options = scope_.options;
    Strategy strategy = planned.strategy;
    if (!options.dump_ir.empty()) {
      strategy.recomputed = planned.report.recompute_set;
      return planner_.planner().plan_with_text(strategy);
    }
    if (options.request != PlanRequest::kPrograms) return planned;
    if (planned.programs.session.programs.empty()) {
      planned = {};
      PLIMSOLL_ASSIGN(planned, planner_.planner().plan(strategy));
    }
    for (passes::Program& program : planned.programs.session.programs) {
      planner::issue_program(program);
      PLIMSOLL_TRY(planner::verify_program(program));
    }
    return planned;
  }

  const RunScope& scope_;
  CachedPlanner planner_;
  StrategyEstimates estimate_;
  SplitSearch resident_;
  std::vector<settings::BatchSplit> splits_;
  OffloadChoices choices_;
  bool may_offload_;                              ///< where nothing else fits
  std::optional<planner::PlanReport> exceeding_;  ///< of a first strategy, whose states alone do not fit
  std::optional<PlannedStep> best_;
  std::optional<planner::Alternative> offloaded_;  ///< of a plan with something offloaded that is the best
};

}  // namespace

Result<ChosenPlan> choose_plan(const RunScope& scope, PlanCache& cache) { return PlanSearch(scope, cache)(); }

}  // namespace plimsoll::strategy
