#include "reports/downsample.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::reports {

std::vector<size_t> downsample(std::span<const double> values, size_t buckets) {
  std::vector<size_t> finite;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) finite.push_back(i);
  if (buckets == 0 || finite.size() <= 2 * buckets + 2) return finite;
  std::vector<size_t> kept = {finite.front()};
  for (size_t b = 0; b < buckets; ++b) {
    const auto begin = finite.begin() + static_cast<std::ptrdiff_t>(b * finite.size() / buckets);
    const auto end = finite.begin() + static_cast<std::ptrdiff_t>((b + 1) * finite.size() / buckets);
    const auto [low, high] =
        std::minmax_element(begin, end, [&](size_t x, size_t y) { return values[x] < values[y]; });
    for (const size_t i : {std::min(*low, *high), std::max(*low, *high)})
      if (i > kept.back()) kept.push_back(i);
  }
  if (finite.back() > kept.back()) kept.push_back(finite.back());
  return kept;
}

}  // namespace plimsoll::reports
