#include "cli/inspect/inspect_rounding.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::cli {

void RoundingError::add(std::span<const float> before, std::span<const float> after) {
  const int64_t finite_so_far = finite();
  double least = finite_so_far > 0 ? min : HUGE_VAL, most = finite_so_far > 0 ? max : -HUGE_VAL;
  elements += static_cast<int64_t>(before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const double x = before[i], y = after[i];
    if (!std::isfinite(x)) {
      ++(std::isnan(x) ? nan : infinite);
      continue;
    }
    least = std::min(least, x);
    most = std::max(most, x);
    zeros_before += x == 0 ? 1 : 0;
    if (!std::isfinite(y)) {
      ++lost;
      continue;
    }
    const double difference = y - x;
    squares += x * x;
    error_squares += difference * difference;
    if (x == 0) continue;
    new_zeros += y == 0 ? 1 : 0;
    const double relative = std::abs(difference / x);
    relative_sum += relative;
    relative_max = std::max(relative_max, relative);
    ++relative_count;
  }
  if (finite() > 0) {
    min = least;
    max = most;
  }
}

void RoundingError::add(const RoundingError& other) {
  if (other.finite() > 0) {
    min = finite() > 0 ? std::min(min, other.min) : other.min;
    max = finite() > 0 ? std::max(max, other.max) : other.max;
  }
  elements += other.elements;
  nan += other.nan;
  infinite += other.infinite;
  lost += other.lost;
  zeros_before += other.zeros_before;
  new_zeros += other.new_zeros;
  clipped += other.clipped;
  squares += other.squares;
  error_squares += other.error_squares;
  relative_sum += other.relative_sum;
  relative_max = std::max(relative_max, other.relative_max);
  relative_count += other.relative_count;
}

double RoundingError::relative_error() const { return squares > 0 ? std::sqrt(error_squares / squares) : 0; }

double RoundingError::mean_relative() const {
  return relative_count > 0 ? relative_sum / static_cast<double>(relative_count) : 0;
}

double RoundingError::snr_db() const {
  return error_squares > 0 ? 10 * std::log10(squares / error_squares) : HUGE_VAL;
}

}  // namespace plimsoll::cli
