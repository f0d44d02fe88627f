// The median of measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace plimsoll {

/// The upper one of two in the middle; 0 of none.
inline double median(std::vector<double> of) {
  if (of.empty()) return 0;
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::ranges::nth_element(of, middle);
  return *middle;
}

}  // namespace plimsoll
