#include "base/sparkline.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

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

bool shows_sparklines() {
  const char* term = std::getenv("TERM");
  if (term == nullptr || *term == '\0' || std::string_view(term) == "dumb") return false;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    const std::string_view locale = text;
    for (const char* spelling : {"UTF-8", "utf-8", "UTF8", "utf8"})
      if (locale.find(spelling) != std::string_view::npos) return true;
    return false;
  }
  return false;
}

void Course::add(double value) {
  if (!std::isfinite(value)) return;
  sum_ += value;
  if (++open_ < each_) return;
  if (means_.size() == kMost) {
    for (size_t i = 0; i < kMost / 2; ++i) means_[i] = means_[2 * i] / 2 + means_[2 * i + 1] / 2;
    means_.resize(kMost / 2);
    each_ *= 2;
    return;  // the share that was full is half of the next one
  }
  means_.push_back(sum_ / static_cast<double>(each_));
  sum_ = 0, open_ = 0;
}

}  // namespace plimsoll
