#include "base/sparkline.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace plimsoll {

std::string sparkline(std::span<const double> values, size_t columns) {
  std::vector<double> finite;
  for (const double value : values)
    if (std::isfinite(value)) finite.push_back(value);
  const size_t width = std::min(columns, finite.size());
  std::vector<double> means(width);
  for (size_t i = 0; i < width; ++i) {
    const size_t begin = i * finite.size() / width, end = (i + 1) * finite.size() / width;
    const double share = 1 / static_cast<double>(end - begin);
    for (size_t k = begin; k < end; ++k) means[i] += finite[k] * share;
  }
  if (means.empty()) return "";
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  // Halves, so that a range beyond the largest number is still one.
  const double range = *high / 2 - *low / 2;
  std::string out;
  for (const double mean : means) {
    const double height = range > 0 ? (mean / 2 - *low / 2) / range : 0;
    out += "\xE2\x96";
    out += static_cast<char>(0x81 + std::clamp(static_cast<int>(height * 8), 0, 7));
  }
  return out;
}

}  // namespace plimsoll
