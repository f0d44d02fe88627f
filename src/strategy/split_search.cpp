#include "strategy/split_search.h"

#include <algorithm>
#include <utility>

#include "planner/programs/place_updates.h"
#include "planner/recompute/search.h"
#include "planner/report/budget.h"
#include "planner/report/why.h"
#include "settings/optimizer_in_backward.h"
#include "strategy/memory_budget.h"
#include "strategy/split_choices.h"

namespace plimsoll::strategy {

Result<PlannedStep> SplitSearch::operator()() {
  const RunScope& scope = planner_.scope();
  const bool in_backward = updates_are(settings::OptimizerInBackward::kTrue);
  if (in_backward && clipping_contradicts(scope.config)) return refuse_clipping();
  const std::vector<settings::BatchSplit> splits =
      candidate_splits(training_of(scope), in_backward || keeps_batch_whole(scope));
  if (scope.options.purpose == Purpose::kTrain) {
    PLIMSOLL_ASSIGN(std::optional<PlannedStep> fastest, fastest_that_fits(splits));
    if (fastest) return std::move(*fastest);
  }
  return largest_split(splits);
}

/// The largest micro-batch that fits; where none does, with as much recomputed as it takes.
Result<PlannedStep> SplitSearch::largest_split(const std::vector<settings::BatchSplit>& splits) {
  const RunScope& scope = planner_.scope();
  std::vector<double> sizes;
  for (const settings::BatchSplit& split : splits)
    sizes.push_back(static_cast<double>(split.micro_batch_size));
  const auto plan_split = [&](size_t i) {
    return plan_fitting({splits[i]}, /*estimates=*/i != 0 && i + 1 != splits.size());
  };
  const int64_t budget =
      budget_bytes(scope.config.memory.budget, scope.prepared.memory) + scope.options.more_bytes;
  auto best = planner::first_that_fits(sizes, budget, plan_split);
  if (!best) return best;
  if (!chooses_recompute(scope.config, scope.options))
    return best->report.fits ? std::move(best) : with_least_chunks(std::move(*best));
  const bool is_whole = best->strategy.split.grad_accum_steps == splits[0].grad_accum_steps;
  const bool is_plain = best->strategy.chunk_tokens == 0;
  if (best->report.fits && is_whole && is_plain) return best;
  if (!best->report.fits || !is_plain) {
    PLIMSOLL_ASSIGN(best, with_recompute(std::move(*best)));
  }
  if (splits.size() == 1) return best;
  // The whole batch at once has no accumulators and reads weights once, the smallest part the least to keep.
  return with_other_split(std::move(*best), splits[is_whole ? splits.size() - 1 : 0]);
}

/// The better of that plan and the plan of the other split.
Result<PlannedStep> SplitSearch::with_other_split(PlannedStep best, const settings::BatchSplit& split) {
  auto second = plan_fitting({split});
  finds_least_ = finds_least_ && !best.report.fits;
  planner_.planner().set_finds_least(finds_least_);
  if (second && !second->report.fits) {
    const double most = best.report.fits ? best.report.seconds_estimated : kAnySeconds;
    second = recompute_to_fit(std::move(*second), most);
  }
  // What cannot be planned does not fit.
  return second && is_better(second->report, best.report) ? std::move(second) : std::move(best);
}

/// The search for the layers of that strategy that are recomputed; `plain` outlives it.
auto SplitSearch::recompute_fit(const PlannedStep& plain) {
  const auto plan_choice = [this, strategy = plain.strategy](const planner::RecomputeChoice& choice,
                                                             int64_t goal) {
    const int64_t chunk_tokens = choice.chunk_tokens > 0 ? choice.chunk_tokens : strategy.chunk_tokens;
    return plan_within({strategy.split, choice.layers, chunk_tokens, strategy.optimizer_in_backward}, goal);
  };
  return planner::RecomputeFit<PlannedStep, decltype(plan_choice)>(plain.report, plain.facts->chain,
                                                                   plain.facts->arena_bytes, plan_choice);
}

/// The plan that takes least time of those that fit: first of the splits with nothing given up for memory,
/// then with smaller chunks of the loss and with recomputed layers. Nothing where none was found.
Result<std::optional<PlannedStep>> SplitSearch::fastest_that_fits(
    const std::vector<settings::BatchSplit>& splits) {
  if (splits.size() == 1) {  // as a rule it fits as it is
    PLIMSOLL_ASSIGN(PlannedStep planned, plan_fitting({splits.front()}));
    least_seconds_ = planned.report.seconds_estimated;
    if (planned.report.fits && planned.strategy.chunk_tokens == 0) return std::optional(std::move(planned));
  }
  PLIMSOLL_ASSIGN(std::vector<PlannedStep> estimated, estimates_by_time(splits));
  least_seconds_ = estimated.front().report.seconds_estimated;
  Fastest best;
  for (const PlannedStep& estimate : estimated) {
    best.drop_programs();
    if (!best.found && planner::excess_bytes(estimate.report) <= 0)
      best.add(plan_fitting({estimate.strategy.split}));
  }
  std::erase_if(estimated,
                [&](const PlannedStep& p) { return p.report.seconds_estimated >= best.seconds(); });
  PLIMSOLL_TRY(add_recomputed(std::move(estimated), best));
  if (best.found && !best.found->strategy.recomputed.empty()) {
    PLIMSOLL_ASSIGN(best.found, with_largest_chunks(std::move(*best.found)));
  }
  return std::move(best.found);
}

/// With smaller chunks of the loss and with recomputed layers, as far as that may be faster.
Status SplitSearch::add_recomputed(std::vector<PlannedStep> estimated, Fastest& best) {
  for (const Recomputed& split : by_least_seconds(std::move(estimated))) {
    if (split.estimate.report.seconds_estimated >= best.seconds()) continue;
    best.drop_programs();
    best.add(plan_fitting({split.estimate.strategy.split}, /*estimates=*/true));
    if (split.least_seconds >= best.seconds()) continue;
    best.drop_programs();
    auto fit = recompute_fit(split.estimate);
    PLIMSOLL_ASSIGN(std::optional<PlannedStep> recomputed,
                    fit.fastest(best.seconds() - split.estimate.report.seconds_estimated));
    if (recomputed) best.add(std::move(*recomputed));
  }
  return Ok{};
}

/// The one that may be fastest first: its time says of the others that they are not worth a plan.
std::vector<SplitSearch::Recomputed> SplitSearch::by_least_seconds(std::vector<PlannedStep> estimated) {
  std::vector<Recomputed> list;
  for (PlannedStep& estimate : estimated) {
    if (updates_are(settings::OptimizerInBackward::kAuto) && places_updates(estimate.strategy)) {
      auto in = estimate_plain(estimate.strategy.split, /*in_backward=*/true);
      if (in && in->report.arena_bytes <= estimate.report.arena_bytes) estimate = std::move(*in);
    }
    list.push_back({std::move(estimate), kAnySeconds});
    Recomputed& last = list.back();
    if (!chooses_recompute(planner_.scope().config, planner_.scope().options) ||
        last.estimate.facts == nullptr)
      continue;
    const auto least = recompute_fit(last.estimate).least_seconds();
    if (least) last.least_seconds = last.estimate.report.seconds_estimated + *least;
  }
  std::ranges::stable_sort(list, {}, &Recomputed::least_seconds);
  return list;
}

/// Of each split that is worth planning, the fastest first. Under rates that were measured at first use a
/// larger part is not worth it where it gains no more than the error of these rates.
Result<std::vector<PlannedStep>> SplitSearch::estimates_by_time(
    const std::vector<settings::BatchSplit>& splits) {
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
  const std::vector<bool> worth =
      worth_planning(times, rates_margin(planner_.scope().prepared.costs->profile()));
  std::vector<PlannedStep> kept;
  for (size_t i = 0; i < estimated.size(); ++i)
    if (worth[i]) kept.push_back(std::move(estimated[i]));
  std::ranges::stable_sort(kept, {}, [](const PlannedStep& p) { return p.report.seconds_estimated; });
  return kept;
}

/// With nothing given up for memory, and what recomputation would gain; without programs.
Result<PlannedStep> SplitSearch::estimate_plain(const settings::BatchSplit& split, bool in_backward) {
  Strategy strategy{split};
  strategy.optimizer_in_backward = in_backward;
  return planner_.estimate_with_facts(strategy);
}

Result<PlannedStep> SplitSearch::considered(Result<PlannedStep> planned) {
  if (planned) considered_.push_back(planner::alternative_of(planned->report));
  return planned;
}
Result<PlannedStep> SplitSearch::plan(const Strategy& strategy) {
  return considered(planner_.plan(strategy));
}
Result<PlannedStep> SplitSearch::plan_within(const Strategy& strategy, int64_t goal) {
  return considered(planner_.plan_within(strategy, goal));
}

/// Whether the run trains, and the setting is that word.
bool SplitSearch::updates_are(settings::OptimizerInBackward word) const {
  const RunScope& scope = planner_.scope();
  return scope.options.purpose == Purpose::kTrain && scope.config.memory.optimizer_in_backward == word;
}

/// The error that says what a second backward would cost.
Result<PlannedStep> SplitSearch::refuse_clipping() {
  const settings::RunConfig& config = planner_.scope().config;
  Strategy strategy{candidate_splits(training_of(planner_.scope()), true).front()};
  PLIMSOLL_ASSIGN(const PlannedStep once, plan(strategy));
  strategy.optimizer_in_backward = true;
  PLIMSOLL_ASSIGN(const PlannedStep twice, plan(strategy));
  return settings::clipping_error(config, twice.report.seconds_estimated / once.report.seconds_estimated - 1);
}

/// That strategy with the updates where memory.optimizer_in_backward has them.
Result<PlannedStep> SplitSearch::plan_placed(Strategy strategy) {
  const auto plan_in = [&](bool in_backward) {
    strategy.optimizer_in_backward = in_backward;
    return plan(strategy);
  };
  if (updates_are(settings::OptimizerInBackward::kTrue)) return plan_in(true);
  return places_updates(strategy) ? planner::place_updates(plan_in) : plan_in(false);
}

/// Whether the updates stand in backward, or may.
bool SplitSearch::places_updates(const Strategy& strategy) const {
  return updates_are(settings::OptimizerInBackward::kTrue) ||
         (updates_are(settings::OptimizerInBackward::kAuto) &&
          against_optimizer_in_backward(planner_.scope().config, strategy.split.grad_accum_steps).empty());
}

/// That strategy with chunks of head and loss as much smaller as it takes to fit, as far as they can help.
/// `estimates`: an estimate will do where nothing fits.
Result<PlannedStep> SplitSearch::plan_fitting(Strategy strategy, bool estimates) {
  const auto plan_next = [&] { return estimates ? plan_within(strategy, 0) : plan(strategy); };
  PLIMSOLL_ASSIGN(PlannedStep planned,
                  estimates && !places_updates(strategy) ? plan_next() : plan_placed(strategy));
  strategy = planned.strategy;
  while (!planned.report.fits) {
    if (planned.facts == nullptr) break;
    const int64_t left = planned.facts->arena_bytes - planner::excess_bytes(planned.report);
    const auto fits = [&](const StrategyFacts::Chunk& chunk) { return chunk.alive_bytes <= left; };
    const auto chunk = std::ranges::find_if(planned.facts->chunks, fits);
    if (chunk == planned.facts->chunks.end()) break;
    strategy.chunk_tokens = chunk->tokens;
    planned.programs = {};  // several plans at once would be memory that none of them counts
    PLIMSOLL_ASSIGN(planned, plan_next());
  }
  return planned;
}

/// The chunks with which least is alive.
Result<PlannedStep> SplitSearch::with_least_chunks(PlannedStep planned) {
  if (planned.facts == nullptr || !finds_least_) return planned;
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

/// The better of that plan, where it fits because of its chunks, and the same split with recomputed layers.
Result<PlannedStep> SplitSearch::with_recompute(PlannedStep planned) {
  if (!planned.report.fits) return recompute_to_fit(std::move(planned));
  PLIMSOLL_ASSIGN(PlannedStep plain,
                  plan({planned.strategy.split, {}, 0, planned.strategy.optimizer_in_backward}));
  PLIMSOLL_ASSIGN(PlannedStep recomputed, recompute_to_fit(std::move(plain)));
  return is_better(recomputed.report, planned.report) ? std::move(recomputed) : std::move(planned);
}

/// The same split with as much recomputed as it takes to fit, or to need least; where that would take
/// `most_seconds` or more, a plan that does not fit.
Result<PlannedStep> SplitSearch::recompute_to_fit(PlannedStep plain, double most_seconds) {
  if (plain.facts == nullptr || plain.facts->chain.blocks.empty()) return plain;
  if (plain.report.seconds_estimated >= most_seconds) return plain;
  plain.programs = {};
  auto fit = recompute_fit(plain);
  PLIMSOLL_ASSIGN(PlannedStep chosen, fit(finds_least_ && most_seconds == kAnySeconds,
                                          most_seconds - plain.report.seconds_estimated));
  return with_largest_chunks(std::move(chosen));
}

/// The same layers given by hand lead to the same plan: with the largest chunks that fit.
Result<PlannedStep> SplitSearch::with_largest_chunks(PlannedStep chosen) {
  if (chosen.strategy.chunk_tokens == 0 || !chosen.report.fits) return chosen;
  PLIMSOLL_ASSIGN(PlannedStep larger,
                  plan_fitting({chosen.strategy.split, chosen.strategy.recomputed}, /*estimates=*/true));
  if (larger.report.fits && larger.strategy != chosen.strategy) return larger;
  return chosen;  // with other chunks ops are ordered otherwise
}

}  // namespace plimsoll::strategy
