// From what the search for recomputation thinks to what the packing says.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/budget.h"
#include "planner/recompute_fixed.h"
#include "planner/recompute_search.h"

namespace plimsoll::planner {

/// `plan(choice)` gives a Result of a Planned: anything with a `report`, and `facts`, a pointer that may be
/// null to what has AliveByBlock `alive`.
template <typename Planned, typename PlanOf>
class RecomputeFit {
 public:
  /// `plain` computes nothing again, does not fit, and `chain` is of its program, whose arena has
  /// `arena_bytes`.
  RecomputeFit(const PlanReport& plain, const RecomputeChain& chain, int64_t arena_bytes, PlanOf plan)
      : chain_(chain), arena_(arena_bytes - excess_bytes(plain)), plan_(std::move(plan)) {}

  /// The plan that takes least time of those that fit, else the one that needs least. A few are made, more
  /// where nothing fits; `finds_least` false: then any plan that does not fit will do. Deterministic.
  Result<Planned> operator()(bool finds_least) {
    PLIMSOLL_ASSIGN(std::optional<Planned> fits, attempt(0));
    if (fits) return std::move(*fits);
    if (!finds_least || chain_.blocks.empty()) return plan_({});
    return least();
  }

 private:
  static constexpr int kMostAttempts = 6, kMostFixed = 5;
  /// Room that is left over and not worth another plan: this part of the arena.
  static constexpr int64_t kSmallPart = 64;

  /// The best plan of an attempt so far.
  struct Found {
    std::optional<Planned> plan = {};
    double seconds = 0;  ///< that the search reckons with
  };

  /// Plans `choice`; returns by how much it exceeds the budget. One that exceeds it by at most `goal` and
  /// takes less time than what was found is kept.
  Result<int64_t> try_plan(const RecomputeChoice& choice, int64_t goal, Found& found) {
    PLIMSOLL_ASSIGN(Planned planned, plan_(choice));
    const int64_t excess = excess_bytes(planned.report);
    const auto seconds = [](const Planned& p) { return p.report.seconds_estimated; };
    if (excess <= goal && (!found.plan || seconds(planned) < seconds(*found.plan))) {
      found.plan = std::move(planned);
      found.seconds = choice.seconds;
    }
    return excess;
  }

  /// What needs least. It does not depend on the budget, and ends where no attempt finds less: so that the
  /// least that is named fits, and a byte less does not.
  Result<Planned> least() {
    PLIMSOLL_ASSIGN(Planned least, plan_({}));
    const RecomputeChoice thrifty = thriftiest();
    for (const RecomputeChoice& choice : {thrifty, every_block(thrifty.chunk_tokens)}) {
      PLIMSOLL_ASSIGN(Planned planned, plan_(choice));
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
      PLIMSOLL_ASSIGN(Planned planned, plan_(choice));
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

  /// What the packing adds to the search's reckoning is taken from the next arena that it is asked for, more
  /// each time; what one that does leaves over is offered again.
  Status search(int64_t goal, Found& found) {
    int64_t arena = arena_ + goal;
    std::optional<int64_t> does, does_not;  // arenas
    for (int i = 0; i < kMostAttempts && arena > 0; ++i) {
      const auto choice = cheapest_recompute(chain_, arena);
      if (!choice || (does && choice->seconds >= found.seconds)) break;
      PLIMSOLL_ASSIGN(const int64_t excess, try_plan(*choice, goal, found));
      const int64_t over = excess - goal;
      if (over > 0) {
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

  /// What people set by hand: the reckoning may be a little wrong about how such a plan packs.
  Status try_fixed(int64_t goal, Found& found) {
    int left = kMostFixed;
    for (FixedChoice& fixed : fixed_choices(chain_)) {
      if (left == 0 || (found.plan && fixed.choice.seconds >= found.seconds)) break;
      const int64_t missing = chain_.needed_bytes - fixed.saved_bytes - (arena_ + goal);
      if (missing > most_of_chunks() + (arena_ + goal) / kSmallPart) continue;
      fixed.choice.chunk_tokens = chunk_that_saves(missing);
      PLIMSOLL_ASSIGN(const int64_t excess, try_plan(fixed.choice, goal, found));
      if (excess - goal > arena_ + goal) break;  // twice what there is: far more than a little wrong
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
  PlanOf plan_;
};

}  // namespace plimsoll::planner
