#include "strategy/offload_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "ops/granules.h"
#include "planner/report/budget.h"
#include "settings/offload.h"

namespace plimsoll::strategy {
namespace {

using ir::MemorySpace;
using passes::kAllBlocks;
using passes::OffloadClass;

constexpr size_t kMostSizes = 4;
/// Ways that sketches say fit and that are planned, before sketches are trusted less.
constexpr size_t kMostPlanned = 8, kMostPlannedOfLarge = 3;
/// Blocks of a model of which each room for early copies is looked at, and more ways are planned.
constexpr int32_t kManyBlocks = 16;
/// Part of the peak that copies ahead and behind may add (OffloadOptions::slack_part), and none.
constexpr int64_t kSomeSlack = 8, kNoSlack = 0, kOnDemand = -1;
/// Arenas with copies hold many more tensors: what would bring them closer to the least costs more planning
/// than it is worth, and sketches reckon with as much.
constexpr double kTolerance = 1.0 / 64;
/// Waiting for copies that is not worth another look, as a share of the kernels' time.
constexpr double kHiddenWait = 0.005;
/// Where plans pack worse than their sketches, sketches are told apart anew by what such packing leaves; in
/// the end more goes elsewhere until it fits.
constexpr int kMostRounds = 3, kMostRepairs = 4;
/// With more elsewhere it packs otherwise: by so much worse, and a little.
constexpr double kPackingMargin = 1.25, kPackingStep = 1.0 / 128;

/// Classes that go together: masters move with the optimizer's states.
using Group = std::vector<OffloadClass>;
/// What moves once a step first. Then what moves with each micro-batch: gradients are moved out and in,
/// parameters in alone, twice; which of them waits least depends on the run.
const std::array<std::vector<Group>, 2>& orders() {
  using enum OffloadClass;
  static const std::array<std::vector<Group>, 2> kOrders = {
      {{{kOptimizer, kMasters}, {kActivations}, {kGradients}, {kParameters}},
       {{kOptimizer, kMasters}, {kGradients}, {kParameters}, {kActivations}}}};
  return kOrders;
}

/// By class, where it lies when it lies elsewhere.
using OffloadAssignment = std::array<MemorySpace, passes::kNumOffloadClasses>;

/// All in one place, the quickest first; where there are two, what moves least on the second before all.
std::vector<OffloadAssignment> places_of(const std::vector<MemorySpace>& list) {
  std::vector<OffloadAssignment> result;
  for (const MemorySpace space : list) {
    if (!result.empty()) {
      OffloadAssignment mixed = result.front();
      for (const OffloadClass c : {OffloadClass::kOptimizer, OffloadClass::kMasters})
        mixed[static_cast<size_t>(c)] = space;
      result.push_back(mixed);
    }
    OffloadAssignment& places = result.emplace_back();
    places.fill(space);
  }
  return result;
}

class Search {
 public:
  Search(const OffloadChoices& choices, const SketchOffload& estimate, const PlanOffload& plan)
      : choices_(choices), estimate_(estimate), plan_(plan) {
    const size_t count = std::min(choices.splits.size(), kMostSizes);
    for (size_t i = 0; i < count; ++i)
      splits_.push_back(choices.splits[count < 2 ? 0 : i * (choices.splits.size() - 1) / (count - 1)]);
  }

  Result<PlannedStep> operator()() {
    for (const OffloadAssignment& places : places_of(choices_.places)) {
      packing_ = 0;
      std::vector<Found> found;
      for (int i = 0; i < kMostRounds && may_fit(places); ++i) {
        std::vector<Found> better = strategies(places);
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
      for (const Found& f : found) {
        auto planned = plan_fitting(f.strategy);
        if (planned) return std::move(*planned);
      }
    }
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

  /// From now on sketches are reckoned to pack as that plan did, and a little worse.
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

  [[nodiscard]] Strategy way_of(const settings::BatchSplit& split, bool recompute_all, int64_t slack) const {
    Strategy strategy{.split = split, .chunk_tokens = recompute_all ? ops::kLossRows : 0};
    strategy.optimizer_in_backward = choices_.in_backward;
    strategy.recompute_all = recompute_all;
    strategy.offload.num_blocks = choices_.num_blocks;
    strategy.offload.slack_part = slack;
    strategy.tolerance = kTolerance;
    return strategy;
  }
  static void set(Strategy& strategy, const Group& group, const OffloadAssignment& places, int32_t blocks) {
    for (const OffloadClass c : group) {
      const auto i = static_cast<size_t>(c);
      strategy.offload.spaces[i] = blocks == 0 ? MemorySpace::kDevice : places[i];
      strategy.offload.blocks[i] = blocks == 0 ? kAllBlocks : blocks;
    }
  }
  static Strategy with_all(Strategy strategy, const OffloadAssignment& places) {
    for (const Group& group : orders().front()) set(strategy, group, places, kAllBlocks);
    return strategy;
  }

  /// By how much it exceeds its budgets; nothing where it cannot be planned.
  [[nodiscard]] std::optional<int64_t> excess(const Strategy& strategy) const {
    const auto report = estimate_(strategy);
    return report ? std::optional(excess_of(*report)) : std::nullopt;
  }
  [[nodiscard]] bool fits(const Strategy& strategy) const {
    const auto over = excess(strategy);
    return over && *over <= 0;
  }

  /// Whether some way may: what is tried first, which is sketched in any case, or the least.
  [[nodiscard]] bool may_fit(const OffloadAssignment& places) const {
    return fits(with_all(way_of(splits_.front(), false, kOnDemand), places)) ||
           fits(with_all(way_of(splits_.back(), choices_.may_recompute, kOnDemand), places));
  }

  [[nodiscard]] std::vector<bool> recomputes() const {
    return choices_.may_recompute ? std::vector<bool>{false, true} : std::vector<bool>{false};
  }

  /// Those that fit: of each split, order and room for early copies the quickest. None is tried whose kernels
  /// alone take longer than what was found; computing again only adds kernels.
  [[nodiscard]] std::vector<Found> strategies(const OffloadAssignment& places) const {
    std::vector<Found> found;
    const double hidden = is_large() ? 1 + kHiddenWait : 1;
    const auto may_be_faster = [&](double kernels) {
      return kernels < choices_.most_seconds &&
             std::ranges::none_of(found, [&](const Found& f) { return f.seconds <= hidden * kernels; });
    };
    std::vector<double> kernels(splits_.size(), 0);  // at least
    for (const bool recompute_all : recomputes())
      for (size_t i = 0; i < splits_.size(); ++i) {
        if (!may_be_faster(kernels[i])) continue;
        const auto all = estimate_(with_all(way_of(splits_[i], recompute_all, kOnDemand), places));
        if (!all) continue;
        kernels[i] = all->seconds_estimated - all->parts.parts[static_cast<size_t>(planner::Part::kCopies)];
        if (excess_of(*all) > 0) continue;
        for (const auto& order : orders())
          for (const int64_t slack : {kSomeSlack, kNoSlack, kOnDemand}) {
            if (!may_be_faster(kernels[i])) break;
            if (find_fitting(way_of(splits_[i], recompute_all, slack), order, places, found) && is_large())
              break;
          }
      }
    return found;
  }

  /// Groups go elsewhere in that order, a block after the other: by halves to the fewest that fit. Where one
  /// step that does not fit takes longer than what is behind it, that is passed over whether it fits or not:
  /// a larger budget, under which the first fits, would never come by it. All of them that fit join `found`;
  /// whether any does.
  bool find_fitting(const Strategy& strategy, std::span<const Group> order, const OffloadAssignment& places,
                    std::vector<Found>& found) const {
    bool any = false;
    double floor = 0;
    const int32_t steps = choices_.num_blocks + 1;  // of a group
    const auto count = static_cast<int32_t>(order.size()) * steps;
    for (int32_t low = 0, high = count + 1; high - low > 1;) {
      // All of them come first: where they do not fit as a rule nothing does.
      const int32_t middle = high > count ? count : low + (high - low) / 2;
      const Strategy tried = moved(strategy, order, places, middle);
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

  /// Whether a sketch takes long; then what waits little is not worth another.
  [[nodiscard]] bool is_large() const { return choices_.num_blocks > kManyBlocks; }

  /// Of the groups in that order so many steps: each block of one, then the rest of it.
  [[nodiscard]] Strategy moved(Strategy strategy, std::span<const Group> order,
                               const OffloadAssignment& places, int32_t count) const {
    const int32_t steps = choices_.num_blocks + 1;
    for (const Group& group : order) {
      if (count <= 0) break;
      set(strategy, group, places, count >= steps ? kAllBlocks : count);
      count -= steps;
    }
    return strategy;
  }

  /// The plan, with more elsewhere where it packs worse than was reckoned.
  [[nodiscard]] std::optional<PlannedStep> plan_fitting(Strategy strategy) const {
    for (int i = 0; i <= kMostRepairs; ++i) {
      auto planned = plan_(strategy);
      if (planned && planned->report.fits) return std::move(*planned);
      if (!grow(strategy, i)) break;
    }
    return std::nullopt;
  }
  /// Of what is elsewhere in part more; where all of it is, less room for copies.
  [[nodiscard]] bool grow(Strategy& strategy, int step) const {
    const int32_t more = std::max(1, choices_.num_blocks / 32) << step;
    bool grown = false;
    for (int32_t& blocks : strategy.offload.blocks) {
      if (blocks == kAllBlocks) continue;
      blocks = blocks + more > choices_.num_blocks ? kAllBlocks : blocks + more;
      grown = true;
    }
    if (!grown && strategy.offload.slack_part > 0) {
      strategy.offload.slack_part = kNoSlack;
      return true;
    }
    return grown;
  }

  /// The smallest micro-batch with all elsewhere: what is kept lies there too, so that computing again does
  /// not always need less. Where it fits, copies are as early as they can be.
  Result<PlannedStep> least() const {
    std::optional<PlannedStep> best;
    std::optional<Error> error;
    for (const MemorySpace space : choices_.places) {
      OffloadAssignment places;
      places.fill(space);
      for (const bool recompute_all : recomputes())
        for (const int64_t slack : {kOnDemand, kNoSlack, kSomeSlack}) {
          Strategy strategy = with_all(way_of(splits_.back(), recompute_all, slack), places);
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

  /// A plan may take less than its sketch: at best what is alive.
  [[nodiscard]] bool may_be_better(const planner::PlanReport& estimated,
                                   const planner::PlanReport& than) const {
    const int64_t excess = excess_of(estimated);
    if (!than.fits) return excess < planner::excess_bytes(than);
    const auto arena = static_cast<double>(estimated.arena_bytes);
    const auto packing = static_cast<int64_t>(arena - arena / estimated.offset_lower_bound_ratio);
    return excess <= packing && estimated.seconds_estimated < than.seconds_estimated;
  }

  double packing_ = 0;  ///< what it adds to an arena, as a share of the sketch's
  const OffloadChoices& choices_;
  const SketchOffload& estimate_;
  const PlanOffload& plan_;
  std::vector<settings::BatchSplit> splits_;
};

}  // namespace

OffloadChoices offload_choices(const settings::RunConfig& config, const PrepareOptions& options,
                               const Prepared& prepared, std::vector<settings::BatchSplit> splits) {
  OffloadChoices choices;
  if (options.purpose != Purpose::kTrain || !settings::chooses_offload(config)) return choices;
  for (const std::string& place : settings::offload_places(config))
    choices.places.push_back(place == "disk" ? MemorySpace::kDisk : MemorySpace::kHostPinned);
  choices.splits = std::move(splits);
  choices.may_recompute = chooses_recompute(config, options);
  choices.in_backward = config.memory.optimizer_in_backward == settings::OptimizerInBackward::kTrue;
  choices.num_blocks = num_blocks(*prepared.model);
  return choices;
}

Result<PlannedStep> choose_offload(const OffloadChoices& choices, const SketchOffload& estimate,
                                   const PlanOffload& plan) {
  PLIMSOLL_CHECK(!choices.places.empty() && !choices.splits.empty(), "there is nothing to choose from");
  return Search(choices, estimate, plan)();
}

}  // namespace plimsoll::strategy
