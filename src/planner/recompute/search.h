// The search for a way to run: candidates, the cheap look that says which of them is worth a plan, and the
// plan that decides. Executes nothing.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"

namespace plimsoll::planner {

/// What is known of a candidate that was planned.
struct Known {
  size_t candidate = 0;
  int64_t peak_bytes = 0;
};

/// Which of the candidates in (low, high) to plan next: the first that fits by the straight line through what
/// is known, which memory is close to; half way where the line says nothing. `sizes` falls along the list.
size_t next_candidate(const std::vector<double>& sizes, const std::vector<Known>& known, size_t low,
                      size_t high, int64_t budget_bytes);

/// The plan of the first candidate that fits; where none does, of the one that needs least. Memory falls
/// along the list, the fastest first, but for the very first candidate, which stands apart: it may need less
/// than the next ones. `plan(i)` gives a Result of anything with a `report`; a candidate that cannot be
/// planned does not fit, the last one's error is returned. Deterministic; few candidates are planned.
template <typename PlanOf>
auto first_that_fits(const std::vector<double>& sizes, int64_t budget_bytes, PlanOf&& plan)
    -> decltype(plan(size_t{0})) {
  std::vector<Known> known;
  const auto fits = [&](size_t i, const auto& planned) {
    if (!planned) return false;
    known.push_back({i, planned->report.process_peak_bytes()});
    return planned->report.fits;
  };
  const size_t last = sizes.size() - 1;
  auto best = plan(0);
  if (fits(0, best) || last == 0) return best;
  const bool first_is_known = !known.empty();
  best = plan(last);
  if (!best) return best;
  if (!fits(last, best))
    return first_is_known && known.front().peak_bytes < known.back().peak_bytes ? plan(0) : std::move(best);
  size_t low = 0, high = last, at = last;  // low does not fit, high does; at: what best is
  while (low + 1 < high) {
    const size_t middle = next_candidate(sizes, known, low, high, budget_bytes);
    auto tried = plan(middle);
    if (fits(middle, tried)) {
      best = std::move(tried);
      high = at = middle;
    } else {
      low = middle;
    }
  }
  return at == high ? std::move(best) : plan(high);
}

}  // namespace plimsoll::planner
