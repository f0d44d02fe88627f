// Cross-entropy of one row of logits in double: the reference of cross_entropy and head_loss.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ops/loss.h"

namespace plimsoll::ops {

inline bool counts(double target) { return target != static_cast<double>(kIgnoreTarget); }

inline double log_sum_exp(const double* logits, size_t count) {
  const double highest = *std::max_element(logits, logits + count);
  double total = 0;
  for (size_t i = 0; i < count; ++i) total += std::exp(logits[i] - highest);
  return highest + std::log(total);
}

/// grad = (softmax(logits) - onehot(target)) * scale; zeros where the target counts nowhere.
inline void cross_entropy_slope(const double* logits, size_t count, double lse, double target, double scale,
                                double* grad) {
  for (size_t i = 0; i < count; ++i) {
    const double hit = static_cast<double>(i) == target ? 1.0 : 0.0;
    grad[i] = counts(target) ? (std::exp(logits[i] - lse) - hit) * scale : 0.0;
  }
}

}  // namespace plimsoll::ops
