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

namespace plimsoll::train {
namespace {

/// Divisors of the global batch, the largest first; the one that is given where one is. With `whole` the
/// whole batch at once alone.
std::vector<BatchSplit> candidate_splits(const TrainingSettings& training, bool whole) {
  if (const auto fixed = fixed_batch_split(training)) return {*fixed};
  if (whole) return {{training.global_batch_size, 1}};
  std::vector<BatchSplit> splits;
  for (int64_t micro = training.global_batch_size; micro >= 1; --micro)
    if (training.global_batch_size % micro == 0)
      splits.push_back({micro, training.global_batch_size / micro});
  return splits;
}

/// Bytes that the device has all the time: what the states take, without accumulators.
int64_t state_bytes(const planner::PlanReport& report) {
  int64_t bytes = 0;
  for (const auto& [name, of_class] : report.classes)
    if (name == "parameters" || name == "master_weights" || name == "optimizer_state") bytes += of_class;
  return bytes;
}

/// The same by what can be offloaded, of a plan with nothing elsewhere.
std::array<int64_t, passes::kNumOffloadClasses> states_by_class(const planner::PlanReport& report) {
  using enum passes::OffloadClass;
  constexpr std::array<std::pair<std::string_view, passes::OffloadClass>, 4> kClasses = {
      {{"parameters", kParameters},
       {"master_weights", kMasters},
       {"optimizer_state", kOptimizer},
       {"gradients", kGradients}}};
  std::array<int64_t, passes::kNumOffloadClasses> bytes = {};
  for (const auto& [label, of_class] : report.classes)
    for (const auto& [name, c] : kClasses)
      if (label == name) bytes[static_cast<size_t>(c)] = of_class;
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

  Result<Planned> operator()() {
    if (updates_are(OptimizerInBackward::kTrue) && clipping_contradicts(config_)) return refuse_clipping();
    const std::vector<BatchSplit> splits =
        candidate_splits(config_.training, updates_are(OptimizerInBackward::kTrue));
    PLIMSOLL_ASSIGN(Planned best, largest_split(splits));
    if (!best.report.fits || prepared_.costs->profile().rates != "calibrated") return best;
    return quickest_split(std::move(best), splits);
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

  /// That way, or another split that takes less time: on a machine that was calibrated it is known what a
  /// smaller part gains where it stays in the caches. The few rates of a first use do not know that, and what
  /// is chosen must not hang on the moment in which they were measured.
  Result<Planned> quickest_split(Planned best, const std::vector<BatchSplit>& splits) {
    best.programs = {};  // as in plan_fitting
    for (const BatchSplit& split : splits) {
      auto other = plan_fitting({split});
      if (!other || other->report.seconds_estimated >= best.report.seconds_estimated) continue;
      if (!other->report.fits && chooses_recompute(config_, options_))
        other = recompute_to_fit(std::move(*other), best.report.seconds_estimated);
      if (other && is_better(other->report, best.report)) best = std::move(*other);
    }
    return best;
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
    planned.facts = facts_of(planned, config_, prepared_, target_);
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
      sketched.facts = facts_of(sketched, config_, prepared_, target_);
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
    const std::shared_ptr<const WayFacts> facts = plain.facts;
    const Way way = plain.way;
    plain.programs = {};
    const auto plan_choice = [&](const planner::RecomputeChoice& choice, int64_t goal) {
      const int64_t chunk_tokens = choice.chunk_tokens > 0 ? choice.chunk_tokens : way.chunk_tokens;
      return plan_within({way.split, choice.layers, chunk_tokens, way.optimizer_in_backward}, goal);
    };
    planner::RecomputeFit<Planned, decltype(plan_choice)> fit(plain.report, facts->chain, facts->arena_bytes,
                                                              plan_choice);
    PLIMSOLL_ASSIGN(Planned chosen, fit(options_.finds_least && most_seconds == kAnySeconds,
                                        most_seconds - plain.report.seconds_estimated));
    // The same layers given by hand lead to the same plan: with the largest chunks that fit.
    if (chosen.way.chunk_tokens == 0 || !chosen.report.fits) return chosen;
    PLIMSOLL_ASSIGN(Planned larger, plan_fitting({way.split, chosen.way.recomputed}, /*sketches=*/true));
    if (larger.report.fits && larger.way != chosen.way) return larger;
    return chosen;  // with other chunks ops are ordered otherwise
  }

  const RunConfig& config_;
  const Prepared& prepared_;
  const runtime::Target& target_;
  PrepareOptions options_;
  std::vector<planner::Alternative>& considered_;
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

/// A step that fits and takes so many seconds: choices of what is quicker by more than estimates err. A
/// disk's writes are not spent on that; nor is anything tried where at most `least` could be reached.
void want_quicker(double seconds, double least, OffloadChoices& choices) {
  constexpr double kQuicker = 0.97;
  choices.most_seconds = kQuicker * seconds;
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
  if (options.purpose == Purpose::kTrain && (may_offload || !options.finds_least) &&
      !offload_options(config).any() && !(in_backward && clipping_contradicts(config))) {
    Way first{splits.front()};
    first.optimizer_in_backward = in_backward;
    auto report = sketch(first);
    if (report) choices.state_bytes = states_by_class(*report), least_seconds = report->seconds_estimated;
    if (report && states_exceed(*report)) sketched = std::move(*report);
    if (sketched && !options.finds_least && !options.runs) return Planned{first, {}, std::move(*sketched)};
  }
  std::optional<Planned> without;
  if (!sketched || !may_offload) {
    PLIMSOLL_ASSIGN(without, Chooser(config, prepared, target, options, considered)());
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
      PLIMSOLL_ASSIGN(without, Chooser(config, prepared, target, options, considered)());
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
