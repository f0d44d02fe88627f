// Plans for the choices of the recompute search: what it estimates is compared with what the packing needs.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/recompute/recompute_fixed.h"
#include "planner/recompute/recompute_search.h"
#include "planner/report/budget.h"

namespace plimsoll::planner {

/// The goal of plans that are wanted whatever memory they need.
inline constexpr int64_t kAnyExcess = std::numeric_limits<int64_t>::max();

/// `plan(choice, goal)` gives a Result of a PlannedStep: anything with a `report`, and `facts`, a pointer
/// that may be null to what has AliveByBlock `alive`. For a choice that exceeds the budgets by more than
/// `goal` bytes an estimate will do.
template <typename PlannedStep, typename PlanOf>
class RecomputeFit {
 public:
  /// `plain` recomputes nothing, and `chain` is of its program, whose arena has `arena_bytes`.
  RecomputeFit(const PlanReport& plain, const RecomputeChain& chain, int64_t arena_bytes, PlanOf plan)
      : chain_(chain), arena_(arena_bytes - excess_bytes(plain)), plan_(std::move(plan)) {}

  /// Recomputation with which the step fits takes at least so long, by the search's estimate; nothing: the
  /// step does not fit, or there is nothing to recompute.
  [[nodiscard]] std::optional<double> least_seconds() const {
    if (chain_.blocks.empty()) return std::nullopt;
    const auto choice = cheapest_recompute(chain_, too_large_arena());
    return choice ? std::optional(kAtLeast * choice->seconds) : std::nullopt;
  }

  /// The plan that takes least time of those that fit and recompute for less than `most_seconds`; nothing
  /// where none does. The search tries steps that do not depend on the budget, halved until the fastest that
  /// fits is found: so what fits a budget is found under a larger one too, or something faster. It makes up
  /// to ten plans, most of them estimates. Deterministic.
  Result<std::optional<PlannedStep>> fastest(double most_seconds) {
    Found found;
    if (chain_.blocks.empty()) return std::move(found.plan);
    PLIMSOLL_TRY(try_levels(most_seconds, found));
    if (chain_.blocks.size() <= kManyBlocks) {
      PLIMSOLL_TRY(try_fixed_levels(most_seconds, found));
    }
    return std::move(found.plan);
  }

  /// Where that finds none: a plan that fits after all, else the one that needs least. A few are made, more
  /// where nothing fits; `finds_least` false: then any plan that does not fit will do. Deterministic.
  Result<PlannedStep> operator()(bool finds_least, double most_seconds) {
    most_seconds_ = most_seconds;
    PLIMSOLL_ASSIGN(std::optional<PlannedStep> fits, attempt(0));
    if (fits) return std::move(*fits);
    if (!finds_least || chain_.blocks.empty()) return plan_({}, kAnyExcess);
    return least();
  }

 private:
  static constexpr int kMostAttempts = 6, kMostFixed = 5;
  /// Arenas between the least and the one in which nothing is recomputed.
  static constexpr int64_t kLevels = 64;
  /// Blocks of a model, beyond which plans take long: there what people set by hand is not tried beside the
  /// search's own.
  static constexpr size_t kManyBlocks = 16;
  /// Recomputation takes at least this share of the time that the search estimates.
  static constexpr double kAtLeast = 0.9;
  /// Room that is left over and not worth another plan: this part of the arena.
  static constexpr int64_t kSmallPart = 64;
  /// Where this part of the arena is missing, similar choices do not fit either.
  static constexpr int64_t kMuch = 4;

  /// The best plan of an attempt so far.
  struct Found {
    std::optional<PlannedStep> plan = {};
    double seconds = 0;  ///< by the search's estimate
  };

  /// What a plan exceeds the budget by, and what was alive in it; empty: it does not say.
  struct Tried {
    int64_t excess = 0;
    double seconds = 0;
    AliveByBlock alive = {};
  };
  /// Plans `choice`. One that exceeds the budget by at most `goal` and takes less time than what was found is
  /// kept, unless it takes less than `least_seconds`.
  Result<Tried> try_plan(const RecomputeChoice& choice, int64_t goal, Found& found,
                         double least_seconds = 0) {
    PLIMSOLL_ASSIGN(PlannedStep planned, plan_(choice, goal));
    Tried tried{excess_bytes(planned.report), planned.report.seconds_estimated};
    if (planned.facts != nullptr) tried.alive = planned.facts->alive;
    const auto seconds = [](const PlannedStep& p) { return p.report.seconds_estimated; };
    if (tried.seconds < least_seconds) return tried;
    if (tried.excess <= goal && (!found.plan || seconds(planned) < seconds(*found.plan))) {
      found.plan = std::move(planned);
      found.seconds = choice.seconds;
    }
    return tried;
  }

  /// Steps 1 … count, the fastest first; those up to `do_not` are taken not to fit, those from `do_fit` on
  /// to fit.
  struct Steps {
    int64_t count = 0, do_not = 0, do_fit = 0;
  };
  /// Halves them to the first that fits. `choice(i)` is the i-th.
  /// Where a step that does not fit takes longer than one behind it, which it should not, the one behind is
  /// passed over whether it fits or not: a larger budget, under which the first fits, would never come by it.
  template <typename ChoiceOf>
  Status try_halving(const Steps& steps, double most_seconds, ChoiceOf&& choice, Found& found) {
    double floor = 0;
    for (int64_t low = 0, high = steps.count + 1; high - low > 1;) {
      const int64_t middle = low + (high - low) / 2;
      if (middle <= steps.do_not || middle >= steps.do_fit) {
        (middle <= steps.do_not ? low : high) = middle;
        continue;
      }
      const std::optional<RecomputeChoice> next = choice(middle);
      if (!next || kAtLeast * next->seconds >= most_seconds) {  // a faster one may still fit
        high = middle;
        continue;
      }
      PLIMSOLL_ASSIGN(const Tried tried, try_plan(*next, 0, found, floor));
      const bool is_passed_over = tried.seconds < floor;
      (tried.excess <= 0 && !is_passed_over ? high : low) = middle;
      if (tried.excess > 0) floor = std::max(floor, tried.seconds);
    }
    return Ok{};
  }

  /// By the search's estimates, for one arena after another. Arenas far above the memory that there is, and
  /// far below it, are not planned.
  Status try_levels(double most_seconds, Found& found) {
    int64_t most = chain_.needed_bytes;
    for (const RecomputeBlock& block : chain_.blocks) most = std::max(most, block.needed_bytes);
    const int64_t step = (most - least_arena(chain_)) / kLevels, least = most - step * kLevels;
    const auto arena_of = [&](int64_t level) { return least + step * (kLevels - level); };
    int64_t too_large = 0, small_enough = kLevels + 1;
    while (too_large < kLevels && arena_of(too_large + 1) > too_large_arena()) ++too_large;
    while (small_enough - 1 > too_large && arena_of(small_enough - 1) < arena_ - arena_ / 4) --small_enough;
    const auto choice = [&](int64_t level) { return cheapest_recompute(chain_, arena_of(level)); };
    PLIMSOLL_TRY(try_halving({kLevels, too_large, small_enough}, most_seconds, choice, found));
    if (!found.plan && small_enough <= kLevels)
      return try_halving({kLevels, small_enough - 1, kLevels + 1}, most_seconds, choice, found);
    return Ok{};
  }
  /// An arena for which the search's estimate, which leaves out most of what clones hold, does not mean that
  /// the step fits.
  [[nodiscard]] int64_t too_large_arena() const { return arena_ + arena_ / 8; }

  /// And what people set by hand, as the estimate may be wrong about what such a plan holds: those that save
  /// more than all that are faster, with the program's chunks of the loss and with the smallest.
  Status try_fixed_levels(double most_seconds, Found& found) {
    std::vector<FixedChoice> all = fixed_choices(chain_), steps;
    if (!chain_.chunks.empty()) {
      const ChunkOption& chunk = chain_.chunks.back();
      for (size_t i = 0, count = all.size(); i < count; ++i) {
        FixedChoice& fixed = all.emplace_back(all[i]);
        fixed.choice.chunk_tokens = chunk.tokens;
        fixed.choice.seconds += chunk.seconds;
        fixed.saved_bytes += chunk.saved_bytes;
      }
    }
    std::ranges::stable_sort(all, {}, [](const FixedChoice& f) { return f.choice.seconds; });
    for (FixedChoice& fixed : all)
      if (steps.empty() || fixed.saved_bytes > steps.back().saved_bytes) steps.push_back(std::move(fixed));
    const auto choice = [&](int64_t i) { return std::optional(steps[static_cast<size_t>(i - 1)].choice); };
    return try_halving({std::ssize(steps), 0, std::ssize(steps) + 1}, most_seconds, choice, found);
  }

  /// What needs least. It does not depend on the budget, and ends where no attempt finds less: so that the
  /// least that is named fits, and a byte less does not.
  Result<PlannedStep> least() {
    PLIMSOLL_ASSIGN(PlannedStep least, plan_({}, kAnyExcess));
    const RecomputeChoice thrifty = thriftiest();
    for (const RecomputeChoice& choice : {thrifty, every_block(thrifty.chunk_tokens)}) {
      PLIMSOLL_ASSIGN(PlannedStep planned, plan_(choice, excess_bytes(least.report) - 1));
      if (excess_bytes(planned.report) < excess_bytes(least.report)) least = std::move(planned);
    }
    PLIMSOLL_TRY(correct(thrifty, least));
    for (int i = 0; i < kMostAttempts; ++i) {
      PLIMSOLL_ASSIGN(std::optional<PlannedStep> less, attempt(excess_bytes(least.report) - 1));
      if (!less) break;
      least = std::move(*less);
    }
    return least;
  }

  /// The thriftiest again and again, by what the one before really held, as long as that finds another.
  Status correct(RecomputeChoice choice, PlannedStep& least) {
    RecomputeChain chain = chain_;
    for (int i = 0; i < kMostAttempts; ++i) {
      PLIMSOLL_ASSIGN(PlannedStep planned, plan_(choice, excess_bytes(least.report) - 1));
      if (excess_bytes(planned.report) < excess_bytes(least.report)) least = planned;
      if (planned.facts == nullptr) break;
      chain = corrected(std::move(chain), choice, planned.facts->alive);
      RecomputeChoice next = *cheapest_recompute(chain, least_arena(chain));
      if (next.layers == choice.layers && next.chunk_tokens == choice.chunk_tokens) break;
      choice = std::move(next);
    }
    return Ok{};
  }

  /// The plan of least time that was found among those whose excess is at most `goal`.
  Result<std::optional<PlannedStep>> attempt(int64_t goal) {
    Found found;
    PLIMSOLL_TRY(search(goal, found));
    PLIMSOLL_TRY(try_fixed(goal, found));
    return std::move(found.plan);
  }

  /// A plan in which more is alive than the search estimated corrects its estimate. What the packing
  /// adds is taken from the next arena that the search is asked for, more each time; what one that does
  /// leaves over is offered again.
  Status search(int64_t goal, Found& found) {
    RecomputeChain chain = chain_;
    int64_t arena = arena_ + goal;
    std::optional<int64_t> does, does_not;  // arenas
    for (int i = 0; i < kMostAttempts && arena > 0; ++i) {
      const auto choice = cheapest_recompute(chain, arena);
      if (!choice || choice->seconds >= std::min(most_seconds_, does ? found.seconds : most_seconds_)) break;
      PLIMSOLL_ASSIGN(const Tried tried, try_plan(*choice, goal, found));
      const int64_t over = tried.excess - goal;
      if (over > 0) {
        if (most_alive(tried.alive) > arena) {
          RecomputeChain seen = corrected(chain, *choice, tried.alive);
          if (cheapest_recompute(seen, arena)) {
            chain = std::move(seen);
            continue;
          }
        }
        does_not = arena;
        arena -= over << i;
      } else {
        does = arena;
        if (-over <= arena / kSmallPart) break;
        arena -= over;
      }
      if (!does || !does_not) continue;
      if (*does_not - *does <= arena_ / kSmallPart) break;
      arena = *does + (*does_not - *does) / 2;
    }
    return Ok{};
  }

  static int64_t most_alive(const AliveByBlock& alive) {
    return alive.blocks.empty() ? 0 : std::max(alive.at_end, std::ranges::max(alive.blocks));
  }

  /// What people set by hand: the estimate may be a little wrong about how such a plan packs.
  Status try_fixed(int64_t goal, Found& found) {
    int left = kMostFixed;
    for (FixedChoice& fixed : fixed_choices(chain_)) {
      if (left == 0 || fixed.choice.seconds >= (found.plan ? found.seconds : most_seconds_)) break;
      const int64_t missing = chain_.needed_bytes - fixed.saved_bytes - (arena_ + goal);
      if (missing > most_of_chunks() + (arena_ + goal) / kSmallPart) continue;
      fixed.choice.chunk_tokens = chunk_that_saves(missing);
      PLIMSOLL_ASSIGN(const Tried tried, try_plan(fixed.choice, goal, found));
      if (tried.excess - goal > (arena_ + goal) / kMuch) break;  // far more than a little wrong
      --left;
    }
    return Ok{};
  }

  [[nodiscard]] int64_t most_of_chunks() const {
    return chain_.chunks.empty() ? 0 : chain_.chunks.back().saved_bytes;
  }
  /// The largest that saves so much, else the smallest; 0: the program's.
  [[nodiscard]] int64_t chunk_that_saves(int64_t bytes) const {
    if (bytes <= 0 || chain_.chunks.empty()) return 0;
    for (const ChunkOption& chunk : chain_.chunks)
      if (chunk.saved_bytes >= bytes) return chunk.tokens;
    return chain_.chunks.back().tokens;
  }

  [[nodiscard]] RecomputeChoice thriftiest() const {
    return *cheapest_recompute(chain_, least_arena(chain_));
  }
  /// What the runs of the thriftiest hold at once may be more.
  [[nodiscard]] RecomputeChoice every_block(int64_t chunk_tokens) const {
    RecomputeChoice choice;
    choice.chunk_tokens = chunk_tokens;
    for (const RecomputeBlock& block : chain_.blocks) choice.layers.push_back(block.name);
    return choice;
  }

  const RecomputeChain& chain_;
  int64_t arena_;  ///< that would do
  double most_seconds_ = 0;
  PlanOf plan_;
};

}  // namespace plimsoll::planner
