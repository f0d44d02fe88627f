// From what the search for recomputation thinks to what the packing says.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/budget.h"
#include "planner/recompute_search.h"

namespace plimsoll::planner {

/// The plan that computes least again of those that fit, else the one that needs least. `plain` computes
/// nothing again, does not fit, and `chain` is of its program, whose arena has `arena_bytes`. `plan(choice)`
/// gives a Result of anything with a `report`; it is asked a few times, more often where nothing fits, so
/// that the least that is named is what a search with that budget finds; `finds_least` false: then any plan
/// that does not fit will do. Deterministic.
template <typename Planned, typename PlanOf>
Result<Planned> fit_by_recompute(const PlanReport& plain, const RecomputeChain& chain, int64_t arena_bytes,
                                 bool finds_least, PlanOf&& plan) {
  constexpr int kMostAttempts = 6;
  const int64_t plain_excess = excess_bytes(plain);
  // A plan whose excess is at most `goal`: what the packing adds to the search's reckoning is taken from the
  // next arena that it is asked for; what the first that fits leaves over is offered once more.
  const auto attempt = [&](int64_t goal) -> Result<std::optional<Planned>> {
    int64_t arena = arena_bytes - (plain_excess - goal);
    std::optional<Planned> found;
    double seconds = 0;
    for (int i = 0; i < kMostAttempts && arena > 0; ++i) {
      const auto choice = cheapest_recompute(chain, arena);
      if (!choice || (found && choice->seconds >= seconds)) break;
      PLIMSOLL_ASSIGN(Planned planned, plan(*choice));
      const int64_t over = excess_bytes(planned.report) - goal;
      if (over > 0 && found) break;
      arena -= over;
      if (over > 0) continue;
      const bool again = !found;
      found = std::move(planned), seconds = choice->seconds;
      if (!again) break;
    }
    return found;
  };
  PLIMSOLL_ASSIGN(std::optional<Planned> fits, attempt(0));
  if (fits) return std::move(*fits);
  if (!finds_least || chain.blocks.empty()) return plan({});
  PLIMSOLL_ASSIGN(Planned least, plan({}));
  const auto take = [&](Planned planned) {
    if (excess_bytes(planned.report) < excess_bytes(least.report)) least = std::move(planned);
  };
  const auto choice = cheapest_recompute(chain, least_arena(chain));
  PLIMSOLL_ASSIGN(Planned thrifty, plan(*choice));
  take(std::move(thrifty));
  std::vector<std::string> blocks;  // what the runs of the thriftiest hold at once may be more
  for (const RecomputeBlock& block : chain.blocks) blocks.push_back(block.name);
  PLIMSOLL_ASSIGN(Planned full, plan({blocks, 0, choice->chunk_tokens}));
  take(std::move(full));
  for (int i = 0; i < kMostAttempts && excess_bytes(least.report) > 0; ++i) {
    PLIMSOLL_ASSIGN(std::optional<Planned> less, attempt(excess_bytes(least.report) - 1));
    if (!less) break;
    least = std::move(*less);
  }
  return least;
}

}  // namespace plimsoll::planner
