#include "planner/recompute/search.h"

#include <algorithm>

namespace plimsoll::planner {

size_t next_candidate(const std::vector<double>& sizes, const std::vector<PlannedCandidate>& planned,
                      size_t low, size_t high, int64_t budget_bytes) {
  const size_t half = (low + high) / 2;
  const auto of = [&](size_t candidate) {
    return std::find_if(planned.begin(), planned.end(),
                        [&](const PlannedCandidate& p) { return p.candidate == candidate; });
  };
  const auto large = of(low), small = of(high);
  // The first candidate has other programs than the rest, so that no line goes through it.
  if (low == 0 || large == planned.end() || small == planned.end() || sizes[low] == sizes[high]) return half;
  const double slope =
      static_cast<double>(large->peak_bytes - small->peak_bytes) / (sizes[low] - sizes[high]);
  if (slope <= 0) return half;
  const double size = sizes[high] + static_cast<double>(budget_bytes - small->peak_bytes) / slope;
  size_t candidate = low + 1;
  while (candidate + 1 < high && sizes[candidate] > size) ++candidate;
  return candidate;
}

}  // namespace plimsoll::planner
