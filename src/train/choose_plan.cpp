#include "train/choose_plan.h"

#include <algorithm>
#include <optional>

#include "planner/budget.h"
#include "planner/largest_backward.h"
#include "planner/loss_chunks.h"
#include "planner/place_updates.h"
#include "planner/recompute_fit.h"
#include "planner/search.h"
#include "planner/why.h"
#include "settings/optimizer_in_backward.h"
#include "train/memory_budget.h"

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

class Chooser {
 public:
  Chooser(const RunConfig& config, const Prepared& prepared, const runtime::Target& target,
          const PrepareOptions& options, std::vector<planner::Alternative>& considered)
      : config_(config), prepared_(prepared), target_(target), options_(options), considered_(considered) {
    options_.dump_ir.clear();
  }

  /// The way of the micro-batch that is largest of those that fit; where none does, with as much computed
  /// again as it takes.
  Result<Planned> operator()() {
    if (updates_are(OptimizerInBackward::kTrue) && clipping_contradicts(config_)) return refuse_clipping();
    const std::vector<BatchSplit> splits =
        candidate_splits(config_.training, updates_are(OptimizerInBackward::kTrue));
    std::vector<double> sizes;
    for (const BatchSplit& split : splits) sizes.push_back(static_cast<double>(split.micro_batch_size));
    const auto plan = [&](size_t i) { return plan_fitting({splits[i]}); };
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
    if (second && !second->report.fits) second = recompute_to_fit(std::move(*second));
    if (second && is_better(second->report, best->report))
      return second;  // what cannot be planned does not fit
    return best;
  }

 private:
  Result<Planned> plan(const Way& way) {
    PLIMSOLL_ASSIGN(Planned planned, plan_way(config_, prepared_, way, target_, options_));
    considered_.push_back(planner::alternative_of(planned.report));
    return planned;
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
    const bool may = updates_are(OptimizerInBackward::kAuto) &&
                     against_optimizer_in_backward(config_, way.split.grad_accum_steps).empty();
    return may ? planner::place_updates(plan_in) : plan_in(false);
  }

  /// That way, with chunks of head and loss as much smaller as it takes to fit, as far as they can help.
  Result<Planned> plan_fitting(Way way) {
    PLIMSOLL_ASSIGN(Planned planned, plan_placed(way));
    way = planned.way;
    while (!planned.report.fits) {
      const passes::Program* program = planner::largest_backward(planned.programs.session);
      if (program == nullptr) break;
      const int64_t room = program->plan.device().arena_bytes - planner::excess_bytes(planned.report);
      const auto chunks = planner::smaller_chunks(*program, target_);
      const auto fits = [&](const planner::LossChunk& c) { return planner::most_alive(*program, c) <= room; };
      const auto chunk = std::ranges::find_if(chunks, fits);
      if (chunk == chunks.end()) break;
      way.chunk_tokens = chunk->tokens;
      planned.programs = {};  // several plans at once would be memory that none of them counts
      PLIMSOLL_ASSIGN(planned, plan(way));
    }
    return planned;
  }

  /// The chunks with which least is alive.
  Result<Planned> with_least_chunks(Planned planned) {
    const passes::Program* program = planner::largest_backward(planned.programs.session);
    if (program == nullptr || !options_.finds_least) return planned;
    const int64_t before = planner::most_alive(*program, {});
    int64_t least = before;
    Way way = planned.way;
    for (const planner::LossChunk& chunk : planner::smaller_chunks(*program, target_)) {
      const int64_t alive = planner::most_alive(*program, chunk);
      if (alive >= least) continue;
      least = alive;
      way.chunk_tokens = chunk.tokens;
    }
    if (least == before) return planned;
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

  /// The same split with as much computed again as it takes to fit, or to need least.
  Result<Planned> recompute_to_fit(Planned plain) {
    const passes::Program* program = planner::largest_backward(plain.programs.session);
    if (program == nullptr || plain.programs.gains.empty()) return plain;
    using planner::ProductType;
    const ProductType type = config_.computes_in(Precision::kBf16) ? ProductType::kBf16 : ProductType::kF32;
    const planner::RecomputeChain chain =
        planner::recompute_chain(*program, plain.programs.gains, planner::smaller_chunks(*program, target_),
                                 [&](const ir::Cost& cost) { return prepared_.costs->seconds(cost, type); });
    const int64_t arena = program->plan.device().arena_bytes;
    const Way way = plain.way;
    plain.programs = {};
    const auto plan_choice = [&](const planner::RecomputeChoice& choice) {
      const int64_t chunk_tokens = choice.chunk_tokens > 0 ? choice.chunk_tokens : way.chunk_tokens;
      return plan({way.split, choice.layers, chunk_tokens, way.optimizer_in_backward});
    };
    planner::RecomputeFit<Planned, decltype(plan_choice)> fit(plain.report, chain, arena, plan_choice);
    PLIMSOLL_ASSIGN(Planned chosen, fit(options_.finds_least));
    // The same layers given by hand lead to the same plan: with the largest chunks that fit.
    if (chosen.way.chunk_tokens == 0 || !chosen.report.fits) return chosen;
    const Way smaller = chosen.way;
    chosen.programs = {};
    PLIMSOLL_ASSIGN(chosen, plan_fitting({way.split, smaller.recomputed}));
    if (chosen.report.fits) return chosen;
    chosen.programs = {};  // with other chunks ops are ordered otherwise
    return plan(smaller);
  }

  const RunConfig& config_;
  const Prepared& prepared_;
  const runtime::Target& target_;
  PrepareOptions options_;
  std::vector<planner::Alternative>& considered_;
};

}  // namespace

Result<Planned> choose_plan(const RunConfig& config, const Prepared& prepared, const runtime::Target& target,
                            const PrepareOptions& options, std::vector<planner::Alternative>& considered) {
  PLIMSOLL_ASSIGN(Planned planned, Chooser(config, prepared, target, options, considered)());
  if (options.dump_ir.empty()) return planned;
  // The text that --dump-ir leaves is that of the plan that is run.
  Way way = planned.way;
  way.recomputed = planned.report.recompute_set;
  return plan_way(config, prepared, way, target, options);
}

}  // namespace plimsoll::train
