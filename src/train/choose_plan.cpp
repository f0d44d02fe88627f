#include "train/choose_plan.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "ops/ops.h"
#include "planner/budget.h"
#include "planner/finish_program.h"
#include "planner/place_updates.h"
#include "planner/recompute_fit.h"
#include "planner/search.h"
#include "planner/why.h"
#include "settings/offload.h"
#include "settings/optimizer_in_backward.h"
#include "train/choose_offload.h"
#include "train/known_ways.h"
#include "train/memory_budget.h"
#include "train/sketches.h"
#include "train/split_choices.h"

namespace plimsoll::train {
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
  Chooser(const RunConfig& config, const Prepared& prepared, const runtime::Target& target,
          const PrepareOptions& options, std::vector<planner::Alternative>& considered)
      : config_(config), prepared_(prepared), target_(target), options_(options), considered_(considered) {
    options_.dump_ir.clear();
    if (options_.known == nullptr) options_.known = std::make_shared<KnownWays>();
  }

  /// What a step takes at least, by the sketches of splits with nothing given up; 0: none was looked at.
  [[nodiscard]] double least_seconds() const { return least_seconds_; }

  Result<Planned> operator()() {
    if (updates_are(OptimizerInBackward::kTrue) && clipping_contradicts(config_)) return refuse_clipping();
    const std::vector<BatchSplit> splits =
        candidate_splits(config_.training, updates_are(OptimizerInBackward::kTrue));
    if (options_.purpose == Purpose::kTrain) {
      PLIMSOLL_ASSIGN(std::optional<Planned> quickest, quickest_that_fits(splits));
      if (quickest) return std::move(*quickest);
    }
    return largest_split(splits);
  }

 private:
  /// The way of the micro-batch that is largest of those that fit; where none does, with as much computed
  /// again as it takes.
  Result<Planned> largest_split(const std::vector<BatchSplit>& splits) {
    std::vector<double> sizes;
    for (const BatchSplit& split : splits) sizes.push_back(static_cast<double>(split.micro_batch_size));
    const auto plan = [&](size_t i) {
      return plan_fitting({splits[i]}, /*sketches=*/i != 0 && i + 1 != splits.size());
    };
    const int64_t budget = budget_bytes(config_.memory.budget, prepared_.memory) + options_.more_bytes;
    auto best = planner::first_that_fits(sizes, budget, plan);
    if (!best) return best;
    if (!chooses_recompute(config_, options_))
      return best->report.fits ? std::move(best) : with_least_chunks(std::move(*best));
    const bool is_whole = best->way.split.grad_accum_steps == splits[0].grad_accum_steps;
    const bool is_plain = best->way.chunk_tokens == 0;
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
  [[nodiscard]] auto recompute_fit(const Planned& plain) {
    const auto plan_choice = [this, way = plain.way](const planner::RecomputeChoice& choice, int64_t goal) {
      const int64_t chunk_tokens = choice.chunk_tokens > 0 ? choice.chunk_tokens : way.chunk_tokens;
      return plan_within({way.split, choice.layers, chunk_tokens, way.optimizer_in_backward}, goal);
    };
    return planner::RecomputeFit<Planned, decltype(plan_choice)>(plain.report, plain.facts->chain,
                                                                 plain.facts->arena_bytes, plan_choice);
  }

  /// The plan that takes least time of those that fit: first of the splits with nothing given up for memory,
  /// then with smaller chunks of the loss and with layers computed again. Nothing where none was found.
  Result<std::optional<Planned>> quickest_that_fits(const std::vector<BatchSplit>& splits) {
    if (splits.size() == 1) {  // as a rule it fits as it is
      PLIMSOLL_ASSIGN(Planned planned, plan_fitting({splits.front()}));
      least_seconds_ = planned.report.seconds_estimated;
      if (planned.report.fits && planned.way.chunk_tokens == 0) return std::optional(std::move(planned));
    }
    PLIMSOLL_ASSIGN(std::vector<Planned> sketched, sketches_by_time(splits));
    least_seconds_ = sketched.front().report.seconds_estimated;
    std::optional<Planned> best;
    const auto most_seconds = [&] { return best ? best->report.seconds_estimated : kAnySeconds; };
    const auto take = [&](Result<Planned> other) {
      // What cannot be planned does not fit.
      if (!other || !other->report.fits || other->report.seconds_estimated >= most_seconds()) return;
      best = std::move(*other);
    };
    for (const Planned& sketch : sketched) {
      if (best) best->programs = {};  // as in plan_fitting
      if (!best && planner::excess_bytes(sketch.report) <= 0) take(plan_fitting({sketch.way.split}));
    }
    std::erase_if(sketched, [&](const Planned& p) { return p.report.seconds_estimated >= most_seconds(); });
    for (const Giving& split : by_least_seconds(std::move(sketched))) {
      if (split.sketch.report.seconds_estimated >= most_seconds()) continue;
      if (best) best->programs = {};
      take(plan_fitting({split.sketch.way.split}, /*sketches=*/true));
      if (split.least_seconds >= most_seconds()) continue;
      if (best) best->programs = {};
      auto fit = recompute_fit(split.sketch);
      PLIMSOLL_ASSIGN(std::optional<Planned> again,
                      fit.quickest(most_seconds() - split.sketch.report.seconds_estimated));
      if (again) take(std::move(*again));
    }
    if (best && !best->way.recomputed.empty()) {
      PLIMSOLL_ASSIGN(best, with_largest_chunks(std::move(*best)));
    }
    return best;
  }

  /// A split, and what it takes at least where layers are computed again; infinite: they are not.
  struct Giving {
    Planned sketch;
    double least_seconds = 0;
  };
  /// The one that may be quickest first: what it takes tells of the others that they are not worth a plan.
  std::vector<Giving> by_least_seconds(std::vector<Planned> sketched) {
    std::vector<Giving> list;
    for (Planned& sketch : sketched) {
      if (updates_are(OptimizerInBackward::kAuto) && places_updates(sketch.way)) {
        auto in = sketch_plain(sketch.way.split, /*in_backward=*/true);
        if (in && in->report.arena_bytes <= sketch.report.arena_bytes) sketch = std::move(*in);
      }
      list.push_back({std::move(sketch), kAnySeconds});
      Giving& last = list.back();
      if (!chooses_recompute(config_, options_) || last.sketch.facts == nullptr) continue;
      const auto least = recompute_fit(last.sketch).least_seconds();
      if (least) last.least_seconds = last.sketch.report.seconds_estimated + *least;
    }
    std::ranges::stable_sort(list, {}, &Giving::least_seconds);
    return list;
  }

  /// Of each split that is worth planning, the quickest first. Under rates that were measured at first use a
  /// larger part is not worth it where it gains no more than these err.
  Result<std::vector<Planned>> sketches_by_time(const std::vector<BatchSplit>& splits) {
    std::vector<Planned> sketched;
    std::vector<SplitTime> times;
    std::optional<Error> error;
    for (const BatchSplit& split : spread_splits(splits)) {
      auto sketch = sketch_plain(split, updates_are(OptimizerInBackward::kTrue));
      if (!sketch) {
        error = sketch.error();
        continue;
      }
      times.push_back({split, sketch->report.seconds_estimated});
      sketched.push_back(std::move(*sketch));
    }
    if (sketched.empty()) return std::move(*error);
    const std::vector<bool> worth = worth_planning(times, rates_margin(prepared_.costs->profile()));
    std::vector<Planned> kept;
    for (size_t i = 0; i < sketched.size(); ++i)
      if (worth[i]) kept.push_back(std::move(sketched[i]));
    std::ranges::stable_sort(kept, {}, [](const Planned& p) { return p.report.seconds_estimated; });
    return kept;
  }

  /// With nothing given up for memory, and what computing again would gain; without programs.
  Result<Planned> sketch_plain(const BatchSplit& split, bool in_backward) {
    Way way{split};
    way.optimizer_in_backward = in_backward;
    if (const Planned* known = options_.known->find_sketch(way, /*with_facts=*/true)) {
      Planned planned = *known;
      hold_against_budgets(config_, prepared_, way, target_, options_, planned.report);
      return planned;
    }
    PLIMSOLL_ASSIGN(Planned planned, sketch_way(config_, prepared_, way, target_, options_, nullptr));
    planned.facts = facts_of(planned, prepared_, target_);
    options_.known->add_sketch(planned);
    planned.programs = {};
    return planned;
  }

  /// Each way once; one that was planned before comes without its programs.
  Result<Planned> plan(const Way& way) {
    if (const Planned* known = options_.known->find(way)) {
      Planned planned{way, {}, known->report, known->facts};
      hold_against_budgets(config_, prepared_, way, target_, options_, planned.report);
      considered_.push_back(planner::alternative_of(planned.report));
      return planned;
    }
    PLIMSOLL_ASSIGN(Planned planned, plan_way(config_, prepared_, way, target_, options_));
    planned.facts = facts_of(planned, prepared_, target_);
    options_.known->add(planned);
    considered_.push_back(planner::alternative_of(planned.report));
    return planned;
  }

  /// The same, or the sketch of one that exceeds the budgets by more than `goal` bytes: the least that it can
  /// take says so already, in half the time. Of a known plan as well: what is found must not hang on what was
  /// planned for another budget.
  Result<Planned> plan_within(const Way& way, int64_t goal) {
    if (goal == planner::kAnyExcess) return plan(way);
    Planned sketched;
    if (const Planned* known = options_.known->find_sketch(way)) {
      sketched = *known;
      hold_against_budgets(config_, prepared_, way, target_, options_, sketched.report);
    } else {
      PLIMSOLL_ASSIGN(sketched, sketch_way(config_, prepared_, way, target_, options_, nullptr));
      sketched.facts = facts_of(sketched, prepared_, target_);
      options_.known->add_sketch(sketched);
    }
    if (planner::excess_bytes(sketched.report) <= goal) {
      std::vector<passes::Program>& kept = options_.known->programs().sketched;
      if (!offload_options(config_).any()) kept = std::move(sketched.programs.session.programs);
      auto planned = plan(way);
      kept.clear();
      return planned;
    }
    sketched.programs = {};
    considered_.push_back(planner::alternative_of(sketched.report));
    return sketched;
  }

  /// Whether the run trains, and the setting is that word.
  [[nodiscard]] bool updates_are(OptimizerInBackward word) const {
    return options_.purpose == Purpose::kTrain && config_.memory.optimizer_in_backward == word;
  }

  /// Says what a second backward would cost.
  Result<Planned> refuse_clipping() {
    Way way{candidate_splits(config_.training, true).front()};
    PLIMSOLL_ASSIGN(const Planned once, plan(way));
    way.optimizer_in_backward = true;
    PLIMSOLL_ASSIGN(const Planned twice, plan(way));
    return clipping_error(config_, twice.report.seconds_estimated / once.report.seconds_estimated - 1);
  }

  /// That way, with the updates where memory.optimizer_in_backward has them.
  Result<Planned> plan_placed(Way way) {
    const auto plan_in = [&](bool in_backward) {
      way.optimizer_in_backward = in_backward;
      return plan(way);
    };
    if (updates_are(OptimizerInBackward::kTrue)) return plan_in(true);
    return places_updates(way) ? planner::place_updates(plan_in) : plan_in(false);
  }
  /// Whether the updates stand in backward, or may.
  [[nodiscard]] bool places_updates(const Way& way) const {
    return updates_are(OptimizerInBackward::kTrue) ||
           (updates_are(OptimizerInBackward::kAuto) &&
            against_optimizer_in_backward(config_, way.split.grad_accum_steps).empty());
  }

  /// That way, with chunks of head and loss as much smaller as it takes to fit, as far as they can help.
  /// `sketches`: a sketch will do where nothing fits.
  Result<Planned> plan_fitting(Way way, bool sketches = false) {
    const auto plan_next = [&] { return sketches ? plan_within(way, 0) : plan(way); };
    PLIMSOLL_ASSIGN(Planned planned, sketches && !places_updates(way) ? plan_next() : plan_placed(way));
    way = planned.way;
    while (!planned.report.fits) {
      if (planned.facts == nullptr) break;
      const int64_t room = planned.facts->arena_bytes - planner::excess_bytes(planned.report);
      const auto fits = [&](const WayFacts::Chunk& chunk) { return chunk.alive_bytes <= room; };
      const auto chunk = std::ranges::find_if(planned.facts->chunks, fits);
      if (chunk == planned.facts->chunks.end()) break;
      way.chunk_tokens = chunk->tokens;
      planned.programs = {};  // several plans at once would be memory that none of them counts
      PLIMSOLL_ASSIGN(planned, plan_next());
    }
    return planned;
  }

  /// The chunks with which least is alive.
  Result<Planned> with_least_chunks(Planned planned) {
    if (planned.facts == nullptr || !options_.finds_least) return planned;
    int64_t least = planned.facts->alive_bytes;
    Way way = planned.way;
    for (const WayFacts::Chunk& chunk : planned.facts->chunks) {
      if (chunk.alive_bytes >= least) continue;
      least = chunk.alive_bytes;
      way.chunk_tokens = chunk.tokens;
    }
    if (way == planned.way) return planned;
    planned.programs = {};
    return plan(way);
  }

  /// The better of that, where it fits because of its chunks, and the same split with layers computed again.
  Result<Planned> with_recompute(Planned planned) {
    if (!planned.report.fits) return recompute_to_fit(std::move(planned));
    PLIMSOLL_ASSIGN(Planned plain, plan({planned.way.split, {}, 0, planned.way.optimizer_in_backward}));
    PLIMSOLL_ASSIGN(Planned again, recompute_to_fit(std::move(plain)));
    return is_better(again.report, planned.report) ? std::move(again) : std::move(planned);
  }

  static constexpr double kAnySeconds = std::numeric_limits<double>::infinity();

  /// The same split with as much computed again as it takes to fit, or to need least; where that would take
  /// `most_seconds` or more, one that does not fit.
  Result<Planned> recompute_to_fit(Planned plain, double most_seconds = kAnySeconds) {
    if (plain.facts == nullptr || plain.facts->chain.blocks.empty()) return plain;
    if (plain.report.seconds_estimated >= most_seconds) return plain;
    plain.programs = {};
    auto fit = recompute_fit(plain);
    PLIMSOLL_ASSIGN(Planned chosen, fit(options_.finds_least && most_seconds == kAnySeconds,
                                        most_seconds - plain.report.seconds_estimated));
    return with_largest_chunks(std::move(chosen));
  }

  /// The same layers given by hand lead to the same plan: with the largest chunks that fit.
  Result<Planned> with_largest_chunks(Planned chosen) {
    if (chosen.way.chunk_tokens == 0 || !chosen.report.fits) return chosen;
    PLIMSOLL_ASSIGN(Planned larger,
                    plan_fitting({chosen.way.split, chosen.way.recomputed}, /*sketches=*/true));
    if (larger.report.fits && larger.way != chosen.way) return larger;
    return chosen;  // with other chunks ops are ordered otherwise
  }

  const RunConfig& config_;
  const Prepared& prepared_;
  const runtime::Target& target_;
  PrepareOptions options_;
  std::vector<planner::Alternative>& considered_;
  double least_seconds_ = 0;
};

/// With the programs of the plan, where they are wanted: the search keeps none of ways that it knows.
Result<Planned> with_programs(Planned planned, const RunConfig& config, const Prepared& prepared,
                              const runtime::Target& target, const PrepareOptions& options) {
  const bool has_programs = !planned.programs.session.programs.empty();
  if (!options.runs || !options.dump_ir.empty() || has_programs) return planned;
  const Way way = planned.way;
  planned = {};
  return plan_way(config, prepared, way, target, options);
}

/// A step that fits and takes so many seconds: choices of what is quicker. A disk's writes are not spent on
/// that; nor is anything tried where at most `least` could be reached.
void want_quicker(double seconds, double least, OffloadChoices& choices) {
  choices.most_seconds = seconds;
  std::erase(choices.places, ir::MemorySpace::kDisk);
  if (least >= choices.most_seconds) choices.places.clear();
}

/// The plan of the run with something elsewhere. Each way once.
Result<Planned> plan_elsewhere(const Way& way, const RunConfig& config, const Prepared& prepared,
                               const runtime::Target& target, PrepareOptions options) {
  if (const Planned* known = options.known->find(way)) {
    Planned planned{way, {}, known->report};
    hold_against_budgets(config, prepared, way, target, options, planned.report);
    return planned;
  }
  options.dump_ir.clear();
  PLIMSOLL_ASSIGN(Planned planned, plan_way(config, prepared, way, target, options));
  options.known->add(planned);
  return planned;
}

}  // namespace

Result<Planned> choose_plan(const RunConfig& config, const Prepared& prepared, const runtime::Target& target,
                            const PrepareOptions& asked, std::vector<planner::Alternative>& considered) {
  PrepareOptions options = asked;
  if (options.known == nullptr) options.known = std::make_shared<KnownWays>();
  const bool in_backward = config.memory.optimizer_in_backward == OptimizerInBackward::kTrue;
  const auto splits = candidate_splits(config.training, in_backward);
  OffloadChoices choices = offload_choices(config, options, prepared, splits);
  const bool may_offload = !choices.places.empty() && options.finds_least;  // where nothing else fits
  Sketches sketch(config, prepared, target, options);
  // Where the states alone do not fit, no way without offload does.
  std::optional<planner::PlanReport> sketched;
  double least_seconds = 0;  // that a step is reckoned to take with nothing given up for memory, where known
  Chooser choose(config, prepared, target, options, considered);
  if (options.purpose == Purpose::kTrain && (may_offload || !options.finds_least) &&
      !offload_options(config).any() && !(in_backward && clipping_contradicts(config))) {
    Way first{splits.front()};
    first.optimizer_in_backward = in_backward;
    auto report = sketch(first);
    if (report && states_exceed(*report)) sketched = std::move(*report);
    if (sketched && !options.finds_least && !options.runs) return Planned{first, {}, std::move(*sketched)};
  }
  std::optional<Planned> without;
  if (!sketched || !may_offload) {
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
    auto elsewhere = choose_offload(
        choices, [&](const Way& way) { return sketch(way); },
        [&](const Way& way) { return plan_elsewhere(way, config, prepared, target, options); });
    const bool fits = elsewhere && elsewhere->report.fits;
    const bool may_be_less =
        !elsewhere || !sketched || state_bytes(*sketched) < most_bytes(elsewhere->report);
    if (!without && !fits && may_be_less) {
      PLIMSOLL_ASSIGN(without, choose());
    }
    if (elsewhere && (!without || planner::is_better(elsewhere->report, without->report))) {
      without = std::move(*elsewhere);
      considered.push_back(planner::alternative_of(without->report));
    }
  }
  PLIMSOLL_ASSIGN(Planned planned, with_programs(std::move(*without), config, prepared, target, options));
  if (options.dump_ir.empty()) {
    // What is only compared with others is not run; what is run is verified.
    if (options.verify && options.runs)
      for (const passes::Program& program : planned.programs.session.programs)
        PLIMSOLL_TRY(planner::verify_program(program));
    return planned;
  }
  // The text that --dump-ir leaves is that of the plan that is run.
  Way way = planned.way;
  way.recomputed = planned.report.recompute_set;
  return plan_way(config, prepared, way, target, options);
}

}  // namespace plimsoll::train
