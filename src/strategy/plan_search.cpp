#include "strategy/plan_search.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "planner/programs/finish_program.h"
#include "planner/programs/place_updates.h"
#include "planner/recompute/recompute_fit.h"
#include "planner/recompute/search.h"
#include "planner/report/budget.h"
#include "planner/report/why.h"
#include "settings/offload.h"
#include "settings/optimizer_in_backward.h"
#include "strategy/estimates.h"
#include "strategy/memory_budget.h"
#include "strategy/offload_search.h"
#include "strategy/plan_cache.h"
#include "strategy/split_choices.h"

namespace plimsoll::strategy {
namespace {

/// Bytes that the device has all the time: what the states take, without accumulators.
int64_t state_bytes(const planner::PlanReport& report) {
  int64_t bytes = 0;
  for (const auto& [name, of_class] : report.classes)
    if (name == "parameters" || name == "master_weights" || name == "optimizer_state") bytes += of_class;
  return bytes;
}

/// Whether no way without offload can fit, because what every one of them keeps does not.
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

/// The plan with nothing elsewhere but what the settings have there; without programs where the search keeps
/// none.
class Chooser {
 public:
  Chooser(const settings::RunConfig& config, const Prepared& prepared, const runtime::Target& target,
          const PrepareOptions& options, std::vector<planner::Alternative>& considered)
      : config_(config), prepared_(prepared), target_(target), options_(options), considered_(considered) {
    options_.dump_ir.clear();
    if (options_.known == nullptr) options_.known = std::make_shared<PlanCache>();
  }

  /// What a step takes at least, by the sketches of splits with nothing given up; 0: none was looked at.
  [[nodiscard]] double least_seconds() const { return least_seconds_; }

  Result<PlannedStep> operator()() {
    if (updates_are(settings::OptimizerInBackward::kTrue) && clipping_contradicts(config_))
      return refuse_clipping();
    const std::vector<settings::BatchSplit> splits =
        candidate_splits(config_.training, updates_are(settings::OptimizerInBackward::kTrue));
    if (options_.purpose == Purpose::kTrain) {
      PLIMSOLL_ASSIGN(std::optional<PlannedStep> quickest, quickest_that_fits(splits));
      if (quickest) return std::move(*quickest);
    }
    return largest_split(splits);
  }

 private:
  /// The way of the micro-batch that is largest of those that fit; where none does, with as much computed
  /// again as it takes.
  Result<PlannedStep> largest_split(const std::vector<settings::BatchSplit>& splits) {
    std::vector<double> sizes;
    for (const settings::BatchSplit& split : splits)
      sizes.push_back(static_cast<double>(split.micro_batch_size));
    const auto plan = [&](size_t i) {
      return plan_fitting({splits[i]}, /*sketches=*/i != 0 && i + 1 != splits.size());
    };
    const int64_t budget = budget_bytes(config_.memory.budget, prepared_.memory) + options_.more_bytes;
    auto best = planner::first_that_fits(sizes, budget, plan);
    if (!best) return best;
    if (!chooses_recompute(config_, options_))
      return best->report.fits ? std::move(best) : with_least_chunks(std::move(*best));
    const bool is_whole = best->strategy.split.grad_accum_steps == splits[0].grad_accum_steps;
    const bool is_plain = best->strategy.chunk_tokens == 0;
    if (best->report.fits && is_whole && is_plain) return best;
    if (!best->report.fits || !is_plain) {
      PLIMSOLL_ASSIGN(best, with_recompute(std::move(*best)));
    }
    if (splits.size() == 1) return best;
    // The whole batch at once has no accumulators and reads weights once, the smallest part the least to
    // keep.
    auto second = plan_fitting({splits[is_whole ? splits.size() - 1 : 0]});
    options_.finds_least = options_.finds_least && !best->report.fits;
    if (second && !second->report.fits) {
      const double most = best->report.fits ? best->report.seconds_estimated : kAnySeconds;
      second = recompute_to_fit(std::move(*second), most);
    }
    if (second && is_better(second->report, best->report))
      return second;  // what cannot be planned does not fit
    return best;
  }

  /// The search for what of that way is computed again; `plain` outlives it.
  [[nodiscard]] auto recompute_fit(const PlannedStep& plain) {
    const auto plan_choice = [this, strategy = plain.strategy](const planner::RecomputeChoice& choice,
                                                               int64_t goal) {
      const int64_t chunk_tokens = choice.chunk_tokens > 0 ? choice.chunk_tokens : strategy.chunk_tokens;
      return plan_within({strategy.split, choice.layers, chunk_tokens, strategy.optimizer_in_backward}, goal);
    };
    return planner::RecomputeFit<PlannedStep, decltype(plan_choice)>(plain.report, plain.facts->chain,
                                                                     plain.facts->arena_bytes, plan_choice);
  }

  /// The plan that takes least time of those that fit: first of the splits with nothing given up for memory,
  /// then with smaller chunks of the loss and with layers computed again. Nothing where none was found.
  Result<std::optional<PlannedStep>> quickest_that_fits(const std::vector<settings::BatchSplit>& splits) {
    if (splits.size() == 1) {  // as a rule it fits as it is
      PLIMSOLL_ASSIGN(PlannedStep planned, plan_fitting({splits.front()}));
      least_seconds_ = planned.report.seconds_estimated;
      if (planned.report.fits && planned.strategy.chunk_tokens == 0) return std::optional(std::move(planned));
    }
    PLIMSOLL_ASSIGN(std::vector<PlannedStep> estimated, sketches_by_time(splits));
    least_seconds_ = estimated.front().report.seconds_estimated;
    std::optional<PlannedStep> best;
    const auto most_seconds = [&] { return best ? best->report.seconds_estimated : kAnySeconds; };
    const auto take = [&](Result<PlannedStep> other) {
      // What cannot be planned does not fit.
      if (!other || !other->report.fits || other->report.seconds_estimated >= most_seconds()) return;
      best = std::move(*other);
    };
    for (const PlannedStep& estimate : estimated) {
      if (best) best->programs = {};  // as in plan_fitting
      if (!best && planner::excess_bytes(estimate.report) <= 0) take(plan_fitting({estimate.strategy.split}));
    }
    std::erase_if(estimated,
                  [&](const PlannedStep& p) { return p.report.seconds_estimated >= most_seconds(); });
    for (const Giving& split : by_least_seconds(std::move(estimated))) {
      if (split.estimate.report.seconds_estimated >= most_seconds()) continue;
      if (best) best->programs = {};
      take(plan_fitting({split.estimate.strategy.split}, /*sketches=*/true));
      if (split.least_seconds >= most_seconds()) continue;
      if (best) best->programs = {};
      auto fit = recompute_fit(split.estimate);
      PLIMSOLL_ASSIGN(std::optional<PlannedStep> again,
                      fit.quickest(most_seconds() - split.estimate.report.seconds_estimated));
      if (again) take(std::move(*again));
    }
    if (best && !best->strategy.recomputed.empty()) {
      PLIMSOLL_ASSIGN(best, with_largest_chunks(std::move(*best)));
    }
    return best;
  }

  /// A split, and what it takes at least where layers are computed again; infinite: they are not.
  struct Giving {
    PlannedStep estimate;
    double least_seconds = 0;
  };
  /// The one that may be quickest first: what it takes tells of the others that they are not worth a plan.
  std::vector<Giving> by_least_seconds(std::vector<PlannedStep> estimated) {
    std::vector<Giving> list;
    for (PlannedStep& estimate : estimated) {
      if (updates_are(settings::OptimizerInBackward::kAuto) && places_updates(estimate.strategy)) {
        auto in = estimate_plain(estimate.strategy.split, /*in_backward=*/true);
        if (in && in->report.arena_bytes <= estimate.report.arena_bytes) estimate = std::move(*in);
      }
      list.push_back({std::move(estimate), kAnySeconds});
      Giving& last = list.back();
      if (!chooses_recompute(config_, options_) || last.estimate.facts == nullptr) continue;
      const auto least = recompute_fit(last.estimate).least_seconds();
      if (least) last.least_seconds = last.estimate.report.seconds_estimated + *least;
    }
    std::ranges::stable_sort(list, {}, &Giving::least_seconds);
    return list;
  }

  /// Of each split that is worth planning, the quickest first. Under rates that were measured at first use a
  /// larger part is not worth it where it gains no more than these err.
  Result<std::vector<PlannedStep>> sketches_by_time(const std::vector<settings::BatchSplit>& splits) {
    std::vector<PlannedStep> estimated;
    std::vector<SplitTime> times;
    std::optional<Error> error;
    for (const settings::BatchSplit& split : spread_splits(splits)) {
      auto estimate = estimate_plain(split, updates_are(settings::OptimizerInBackward::kTrue));
      if (!estimate) {
        error = estimate.error();
        continue;
      }
      times.push_back({split, estimate->report.seconds_estimated});
      estimated.push_back(std::move(*estimate));
    }
    if (estimated.empty()) return std::move(*error);
    const std::vector<bool> worth = worth_planning(times, rates_margin(prepared_.costs->profile()));
    std::vector<PlannedStep> kept;
    for (size_t i = 0; i < estimated.size(); ++i)
      if (worth[i]) kept.push_back(std::move(estimated[i]));
    std::ranges::stable_sort(kept, {}, [](const PlannedStep& p) { return p.report.seconds_estimated; });
    return kept;
  }

  /// With nothing given up for memory, and what computing again would gain; without programs.
  Result<PlannedStep> estimate_plain(const settings::BatchSplit& split, bool in_backward) {
    Strategy strategy{split};
    strategy.optimizer_in_backward = in_backward;
    if (const PlannedStep* known = options_.known->find_estimate(strategy, /*with_facts=*/true)) {
      PlannedStep planned = *known;
      hold_against_budgets(config_, prepared_, strategy, target_, options_, planned.report);
      return planned;
    }
    PLIMSOLL_ASSIGN(PlannedStep planned,
                    estimate_strategy(config_, prepared_, strategy, target_, options_, nullptr));
    planned.facts = facts_of(planned, prepared_, target_);
    options_.known->add_estimate(planned);
    planned.programs = {};
    return planned;
  }

  /// Each way once; one that was planned before comes without its programs.
  Result<PlannedStep> plan(const Strategy& strategy) {
    if (const PlannedStep* known = options_.known->find(strategy)) {
      PlannedStep planned{strategy, {}, known->report, known->facts};
      hold_against_budgets(config_, prepared_, strategy, target_, options_, planned.report);
      considered_.push_back(planner::alternative_of(planned.report));
      return planned;
    }
    PLIMSOLL_ASSIGN(PlannedStep planned, plan_strategy(config_, prepared_, strategy, target_, options_));
    planned.facts = facts_of(planned, prepared_, target_);
    options_.known->add(planned);
    considered_.push_back(planner::alternative_of(planned.report));
    return planned;
  }

  /// The same, or the sketch of one that exceeds the budgets by more than `goal` bytes: the least that it can
  /// take says so already, in half the time. Of a known plan as well: what is found must not hang on what was
  /// planned for another budget.
  Result<PlannedStep> plan_within(const Strategy& strategy, int64_t goal) {
    if (goal == planner::kAnyExcess) return plan(strategy);
    PlannedStep estimated;
    if (const PlannedStep* known = options_.known->find_estimate(strategy)) {
      estimated = *known;
      hold_against_budgets(config_, prepared_, strategy, target_, options_, estimated.report);
    } else {
      PLIMSOLL_ASSIGN(estimated, estimate_strategy(config_, prepared_, strategy, target_, options_, nullptr));
      estimated.facts = facts_of(estimated, prepared_, target_);
      options_.known->add_estimate(estimated);
    }
    if (planner::excess_bytes(estimated.report) <= goal) {
      std::vector<passes::Program>& kept = options_.known->programs().estimated;
      if (!settings::offload_options(config_).any()) kept = std::move(estimated.programs.session.programs);
      auto planned = plan(strategy);
      kept.clear();
      return planned;
    }
    estimated.programs = {};
    considered_.push_back(planner::alternative_of(estimated.report));
    return estimated;
  }

  /// Whether the run trains, and the setting is that word.
  [[nodiscard]] bool updates_are(settings::OptimizerInBackward word) const {
    return options_.purpose == Purpose::kTrain && config_.memory.optimizer_in_backward == word;
  }

  /// Says what a second backward would cost.
  Result<PlannedStep> refuse_clipping() {
    Strategy strategy{candidate_splits(config_.training, true).front()};
    PLIMSOLL_ASSIGN(const PlannedStep once, plan(strategy));
    strategy.optimizer_in_backward = true;
    PLIMSOLL_ASSIGN(const PlannedStep twice, plan(strategy));
    return settings::clipping_error(config_,
                                    twice.report.seconds_estimated / once.report.seconds_estimated - 1);
  }

  /// That way, with the updates where memory.optimizer_in_backward has them.
  Result<PlannedStep> plan_placed(Strategy strategy) {
    const auto plan_in = [&](bool in_backward) {
      strategy.optimizer_in_backward = in_backward;
      return plan(strategy);
    };
    if (updates_are(settings::OptimizerInBackward::kTrue)) return plan_in(true);
    return places_updates(strategy) ? planner::place_updates(plan_in) : plan_in(false);
  }
  /// Whether the updates stand in backward, or may.
  [[nodiscard]] bool places_updates(const Strategy& strategy) const {
    return updates_are(settings::OptimizerInBackward::kTrue) ||
           (updates_are(settings::OptimizerInBackward::kAuto) &&
            against_optimizer_in_backward(config_, strategy.split.grad_accum_steps).empty());
  }

  /// That way, with chunks of head and loss as much smaller as it takes to fit, as far as they can help.
  /// `sketches`: a sketch will do where nothing fits.
  Result<PlannedStep> plan_fitting(Strategy strategy, bool estimates = false) {
    const auto plan_next = [&] { return estimates ? plan_within(strategy, 0) : plan(strategy); };
    PLIMSOLL_ASSIGN(PlannedStep planned,
                    estimates && !places_updates(strategy) ? plan_next() : plan_placed(strategy));
    strategy = planned.strategy;
    while (!planned.report.fits) {
      if (planned.facts == nullptr) break;
      const int64_t room = planned.facts->arena_bytes - planner::excess_bytes(planned.report);
      const auto fits = [&](const StrategyFacts::Chunk& chunk) { return chunk.alive_bytes <= room; };
      const auto chunk = std::ranges::find_if(planned.facts->chunks, fits);
      if (chunk == planned.facts->chunks.end()) break;
      strategy.chunk_tokens = chunk->tokens;
      planned.programs = {};  // several plans at once would be memory that none of them counts
      PLIMSOLL_ASSIGN(planned, plan_next());
    }
    return planned;
  }

  /// The chunks with which least is alive.
  Result<PlannedStep> with_least_chunks(PlannedStep planned) {
    if (planned.facts == nullptr || !options_.finds_least) return planned;
    int64_t least = planned.facts->alive_bytes;
    Strategy strategy = planned.strategy;
    for (const StrategyFacts::Chunk& chunk : planned.facts->chunks) {
      if (chunk.alive_bytes >= least) continue;
      least = chunk.alive_bytes;
      strategy.chunk_tokens = chunk.tokens;
    }
    if (strategy == planned.strategy) return planned;
    planned.programs = {};
    return plan(strategy);
  }

  /// The better of that, where it fits because of its chunks, and the same split with layers computed again.
  Result<PlannedStep> with_recompute(PlannedStep planned) {
    if (!planned.report.fits) return recompute_to_fit(std::move(planned));
    PLIMSOLL_ASSIGN(PlannedStep plain,
                    plan({planned.strategy.split, {}, 0, planned.strategy.optimizer_in_backward}));
    PLIMSOLL_ASSIGN(PlannedStep again, recompute_to_fit(std::move(plain)));
    return is_better(again.report, planned.report) ? std::move(again) : std::move(planned);
  }

  static constexpr double kAnySeconds = std::numeric_limits<double>::infinity();

  /// The same split with as much computed again as it takes to fit, or to need least; where that would take
  /// `most_seconds` or more, one that does not fit.
  Result<PlannedStep> recompute_to_fit(PlannedStep plain, double most_seconds = kAnySeconds) {
    if (plain.facts == nullptr || plain.facts->chain.blocks.empty()) return plain;
    if (plain.report.seconds_estimated >= most_seconds) return plain;
    plain.programs = {};
    auto fit = recompute_fit(plain);
    PLIMSOLL_ASSIGN(PlannedStep chosen, fit(options_.finds_least && most_seconds == kAnySeconds,
                                            most_seconds - plain.report.seconds_estimated));
    return with_largest_chunks(std::move(chosen));
  }

  /// The same layers given by hand lead to the same plan: with the largest chunks that fit.
  Result<PlannedStep> with_largest_chunks(PlannedStep chosen) {
    if (chosen.strategy.chunk_tokens == 0 || !chosen.report.fits) return chosen;
    PLIMSOLL_ASSIGN(PlannedStep larger,
                    plan_fitting({chosen.strategy.split, chosen.strategy.recomputed}, /*sketches=*/true));
    if (larger.report.fits && larger.strategy != chosen.strategy) return larger;
    return chosen;  // with other chunks ops are ordered otherwise
  }

  const settings::RunConfig& config_;
  const Prepared& prepared_;
  const runtime::Target& target_;
  PrepareOptions options_;
  std::vector<planner::Alternative>& considered_;
  double least_seconds_ = 0;
};

/// With the programs of the plan, where they are wanted: the search keeps none of ways that it knows.
Result<PlannedStep> with_programs(PlannedStep planned, const settings::RunConfig& config,
                                  const Prepared& prepared, const runtime::Target& target,
                                  const PrepareOptions& options) {
  const bool has_programs = !planned.programs.session.programs.empty();
  if (!options.runs || !options.dump_ir.empty() || has_programs) return planned;
  const Strategy strategy = planned.strategy;
  planned = {};
  return plan_strategy(config, prepared, strategy, target, options);
}

/// A step that fits and takes so many seconds: choices of what is quicker. A disk's writes are not spent on
/// that; nor is anything tried where at most `least` could be reached.
void want_quicker(double seconds, double least, OffloadChoices& choices) {
  choices.most_seconds = seconds;
  std::erase(choices.places, ir::MemorySpace::kDisk);
  if (least >= choices.most_seconds) choices.places.clear();
}

/// The plan of the run with something elsewhere. Each way once.
Result<PlannedStep> plan_offloaded(const Strategy& strategy, const settings::RunConfig& config,
                                   const Prepared& prepared, const runtime::Target& target,
                                   PrepareOptions options) {
  if (const PlannedStep* known = options.known->find(strategy)) {
    PlannedStep planned{strategy, {}, known->report};
    hold_against_budgets(config, prepared, strategy, target, options, planned.report);
    return planned;
  }
  options.dump_ir.clear();
  PLIMSOLL_ASSIGN(PlannedStep planned, plan_strategy(config, prepared, strategy, target, options));
  options.known->add(planned);
  return planned;
}

}  // namespace

Result<PlannedStep> choose_plan(const settings::RunConfig& config, const Prepared& prepared,
                                const runtime::Target& target, const PrepareOptions& asked,
                                std::vector<planner::Alternative>& considered) {
  PrepareOptions options = asked;
  if (options.known == nullptr) options.known = std::make_shared<PlanCache>();
  const bool in_backward = config.memory.optimizer_in_backward == settings::OptimizerInBackward::kTrue;
  const auto splits = candidate_splits(config.training, in_backward);
  OffloadChoices choices = offload_choices(config, options, prepared, splits);
  const bool may_offload = !choices.places.empty() && options.finds_least;  // where nothing else fits
  StrategyEstimates estimate(config, prepared, target, options);
  // Where the states alone do not fit, no way without offload does.
  std::optional<planner::PlanReport> estimated;
  double least_seconds = 0;  // that a step is reckoned to take with nothing given up for memory, where known
  Chooser choose(config, prepared, target, options, considered);
  if (options.purpose == Purpose::kTrain && (may_offload || !options.finds_least) &&
      !settings::offload_options(config).any() && !(in_backward && clipping_contradicts(config))) {
    Strategy first{splits.front()};
    first.optimizer_in_backward = in_backward;
    auto report = estimate(first);
    if (report && states_exceed(*report)) estimated = std::move(*report);
    if (estimated && !options.finds_least && !options.runs)
      return PlannedStep{first, {}, std::move(*estimated)};
  }
  std::optional<PlannedStep> without;
  if (!estimated || !may_offload) {
    PLIMSOLL_ASSIGN(without, choose());
    least_seconds = choose.least_seconds();
  }
  if (without && without->report.fits) {
    want_quicker(without->report.seconds_estimated, least_seconds, choices);
    if (!choices.places.empty()) without->programs = {};  // as in plan_fitting
  } else if (!may_offload) {
    choices.places.clear();
  }
  if (!choices.places.empty()) {
    auto offloaded = choose_offload(
        choices, [&](const Strategy& strategy) { return estimate(strategy); },
        [&](const Strategy& strategy) {
          return plan_offloaded(strategy, config, prepared, target, options);
        });
    const bool fits = offloaded && offloaded->report.fits;
    const bool may_be_less =
        !offloaded || !estimated || state_bytes(*estimated) < most_bytes(offloaded->report);
    if (!without && !fits && may_be_less) {
      PLIMSOLL_ASSIGN(without, choose());
    }
    if (offloaded && (!without || planner::is_better(offloaded->report, without->report))) {
      without = std::move(*offloaded);
      considered.push_back(planner::alternative_of(without->report));
    }
  }
  PLIMSOLL_ASSIGN(PlannedStep planned, with_programs(std::move(*without), config, prepared, target, options));
  if (options.dump_ir.empty()) {
    // What is only compared with others is not run; what is run is verified.
    if (options.verify && options.runs)
      for (const passes::Program& program : planned.programs.session.programs)
        PLIMSOLL_TRY(planner::verify_program(program));
    return planned;
  }
  // The text that --dump-ir leaves is that of the plan that is run.
  Strategy strategy = planned.strategy;
  strategy.recomputed = planned.report.recompute_set;
  return plan_strategy(config, prepared, strategy, target, options);
}

}  // namespace plimsoll::strategy
