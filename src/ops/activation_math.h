// silu of one number in double: the definition that the references of all activations share; gelu.h has gelu.
#pragma once

#include <cmath>

namespace plimsoll::ops {

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double silu_value(double x) { return x * sigmoid(x); }
/// d silu / dx = s * (1 + x * (1 - s)).
inline double silu_slope(double x) {
  const double s = sigmoid(x);
  return s * (1.0 + x * (1.0 - s));
}

}  // namespace plimsoll::ops
