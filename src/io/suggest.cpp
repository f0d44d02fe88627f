// Optimal string alignment: insert, delete, substitute, swap neighbours. Names are short; longer ones are
// cut.
#include "io/suggest.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace plimsoll {

int edit_distance(std::string_view a, std::string_view b, int at_most) {
  constexpr size_t kLongest = 96;  // a hostile key must not cost its square
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  if (static_cast<int>(std::max(a.size(), b.size()) - std::min(a.size(), b.size())) >= at_most)
    return at_most;
  const size_t width = b.size() + 1;
  std::vector<int> cost((a.size() + 1) * width);
  const auto at = [&](size_t i, size_t j) -> int& { return cost[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) at(i, 0) = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) at(0, j) = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int least = at(i, 0);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitute = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      int best = std::min({substitute, at(i - 1, j) + 1, at(i, j - 1) + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, at(i - 2, j - 2) + 1);
      at(i, j) = best;
      least = std::min(least, best);
    }
    if (least >= at_most) return at_most;  // rows never get smaller
  }
  return std::min(cost.back(), at_most);
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  int least = std::numeric_limits<int>::max();
  std::string nearest;
  for (const std::string& candidate : candidates)
    if (const int distance = edit_distance(name, candidate, least); distance < least) {
      least = distance;
      nearest = candidate;
    }
  return nearest;
}

}  // namespace plimsoll
