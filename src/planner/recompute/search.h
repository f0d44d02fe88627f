// The first candidate of a list that fits a budget, found with few plans.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"

namespace plimsoll::planner {

/// A candidate that was planned.
struct PlannedCandidate {
  size_t candidate = 0;
  int64_t peak_bytes = 0;
};

/// Which of the candidates in (low, high) to plan next: the first that fits by the straight line through the
/// planned ones, to which memory is close; the middle where the line says nothing. `sizes` falls along the
/// list.
size_t next_candidate(const std::vector<double>& sizes, const std::vector<PlannedCandidate>& planned,
                      size_t low, size_t high, int64_t budget_bytes);

/// The plan of the first candidate that fits; where none does, of the one that needs least. Memory falls
/// along the list, the fastest first, but for the very first candidate, which stands apart: it may need less
/// than the next ones. `plan(i)` gives a Result of anything with a `report`; a candidate that cannot be
/// planned does not fit, the last one's error is returned. Deterministic; few candidates are planned.
template <typename PlanOf>
auto first_that_fits(const std::vector<double>& sizes, int64_t budget_bytes, PlanOf&& plan)
    -> decltype(plan(size_t{0})) {
  std::vector<PlannedCandidate> peaks;
  const auto fits = [&](size_t i, const auto& planned) {
    if (!planned) return false;
    peaks.push_back({i, planned->report.process_peak_bytes()});
    return planned->report.fits;
  };
  const size_t last = sizes.size() - 1;
  auto best = plan(0);
  if (fits(0, best) || last == 0) return best;
  const bool first_is_planned = !peaks.empty();
  best = plan(last);
  if (!best) return best;
  if (!fits(last, best))
    return first_is_planned && peaks.front().peak_bytes < peaks.back().peak_bytes ? plan(0) : std::move(best);
  size_t low = 0, high = last, at = last;  // low does not fit, high does; at: what best is
  while (low + 1 < high) {
    const size_t middle = next_candidate(sizes, peaks, low, high, budget_bytes);
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
