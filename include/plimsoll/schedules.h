// Learning-rate schedules as functions of the step, with transformers' formulas: pass the result to
// Session::step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "plimsoll/config.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

struct ScheduleOptions {
  int64_t warmup = 0;  ///< steps of linear warmup from 0
  double floor = 0;    ///< the rate that is reached at the end
};

namespace detail {

inline double warmup_rate(int64_t step, double peak, int64_t warmup) {
  return peak * static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, warmup));
}

}  // namespace detail

/// The rate of the step after `step` steps: from `peak` down to the floor along half a cosine, at `total`.
inline double cosine(int64_t step, int64_t total, double peak, const ScheduleOptions& options = {}) {
  if (step < options.warmup) return detail::warmup_rate(step, peak, options.warmup);
  const auto length = static_cast<double>(std::max<int64_t>(1, total - options.warmup));
  const double progress = std::min(1.0, static_cast<double>(step - options.warmup) / length);
  return options.floor + (peak - options.floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

/// The same along a straight line.
inline double linear(int64_t step, int64_t total, double peak, const ScheduleOptions& options = {}) {
  if (step < options.warmup) return detail::warmup_rate(step, peak, options.warmup);
  const auto length = static_cast<double>(std::max<int64_t>(1, total - options.warmup));
  const double left = std::max(0.0, static_cast<double>(total - step) / length);
  return options.floor + (peak - options.floor) * left;
}

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
