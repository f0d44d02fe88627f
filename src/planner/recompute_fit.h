// From what the search for recomputation thinks to what the packing says.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/budget.h"
#include "planner/recompute_fixed.h"
#include "planner/recompute_search.h"

namespace plimsoll::planner {

/// The goal of plans that are wanted whatever they need.
inline constexpr int64_t kAnyExcess = std::numeric_limits<int64_t>::max();

/// `plan(choice, goal)` gives a Result of a Planned: anything with a `report`, and `facts`, a pointer that
/// may be null to what has AliveByBlock `alive`. Of what exceeds the budgets by more than `goal` bytes a
/// sketch does.
template <typename Planned, typename PlanOf>
class RecomputeFit {
 public:
  /// `plain` computes nothing again, does not fit, and `chain` is of its program, whose arena has
  /// `arena_bytes`.
  RecomputeFit(const PlanReport& plain, const RecomputeChain& chain, int64_t arena_bytes, PlanOf plan)
      : chain_(chain), arena_(arena_bytes - excess_bytes(plain)), plan_(std::move(plan)) {}

  /// The plan that takes least time of those that fit and compute less than `most_seconds` again, else the
  /// one that needs least. A few are made, more where nothing fits; `finds_least` false: then any plan that
  /// does not fit will do. Deterministic.
  Result<Planned> operator()(bool finds_least, double most_seconds) {
    most_seconds_ = most_seconds;
    PLIMSOLL_ASSIGN(std::optional<Planned> fits, attempt(0));
    if (fits) return std::move(*fits);
    if (!finds_least || chain_.blocks.empty()) return plan_({}, kAnyExcess);
    return least();
  }

 private:
  static constexpr int kMostAttempts = 6, kMostFixed = 5;
  /// Room that is left over and not worth another plan: this part of the arena.
  static constexpr int64_t kSmallPart = 64;
  /// Where this part of the arena is missing, the like of it do not fit either.
  static constexpr int64_t kMuch = 4;

  /// The best plan of an attempt so far.
  struct Found {
    std::optional<Planned> plan = {};
    double seconds = 0;  ///< that the search reckons with
  };

  /// What a plan exceeds the budget by, and what was alive in it; empty: it does not say.
  struct Tried {
    int64_t excess = 0;
    AliveByBlock alive = {};
  };
  /// Plans `choice`. One that exceeds the budget by at most `goal` and takes less time than what was found is
  /// kept.
  Result<Tried> try_plan(const RecomputeChoice& choice, int64_t goal, Found& found) {
    PLIMSOLL_ASSIGN(Planned planned, plan_(choice, goal));
    Tried tried{excess_bytes(planned.report)};
    if (planned.facts != nullptr) tried.alive = planned.facts->alive;
    const auto seconds = [](const Planned& p) { return p.report.seconds_estimated; };
    if (tried.excess <= goal && (!found.plan || seconds(planned) < seconds(*found.plan))) {
      found.plan = std::move(planned);
      found.seconds = choice.seconds;
    }
    return tried;
  }

  /// What needs least. It does not depend on the budget, and ends where no attempt finds less: so that the
  /// least that is named fits, and a byte less does not.
  Result<Planned> least() {
    PLIMSOLL_ASSIGN(Planned least, plan_({}, kAnyExcess));
    const RecomputeChoice thrifty = thriftiest();
    for (const RecomputeChoice& choice : {thrifty, every_block(thrifty.chunk_tokens)}) {
      PLIMSOLL_ASSIGN(Planned planned, plan_(choice, excess_bytes(least.report) - 1));
      if (excess_bytes(planned.report) < excess_bytes(least.report)) least = std::move(planned);
    }
    PLIMSOLL_TRY(correct(thrifty, least));
    for (int i = 0; i < kMostAttempts; ++i) {
      PLIMSOLL_ASSIGN(std::optional<Planned> less, attempt(excess_bytes(least.report) - 1));
      if (!less) break;
      least = std::move(*less);
    }
    return least;
  }

  /// The thriftiest again and again, by what the one before really held, as long as that finds another.
  Status correct(RecomputeChoice choice, Planned& least) {
    RecomputeChain chain = chain_;
    for (int i = 0; i < kMostAttempts; ++i) {
      PLIMSOLL_ASSIGN(Planned planned, plan_(choice, excess_bytes(least.report) - 1));
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
  Result<std::optional<Planned>> attempt(int64_t goal) {
    Found found;
    PLIMSOLL_TRY(search(goal, found));
    PLIMSOLL_TRY(try_fixed(goal, found));
    return std::move(found.plan);
  }

  /// A plan in which more is alive than the search reckoned with corrects its reckoning. What the packing
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

  /// What people set by hand: the reckoning may be a little wrong about how such a plan packs.
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
