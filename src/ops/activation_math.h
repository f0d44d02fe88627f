// silu and gelu of one number in double: the definition that the references of all activations share.
#pragma once

#include <cmath>
#include <numbers>
#include <string_view>

namespace plimsoll::ops {

inline constexpr std::string_view kGeluKinds = "approximate must be \"tanh\" or \"none\"";
inline bool is_gelu_kind(std::string_view kind) { return kind == "tanh" || kind == "none"; }

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double silu_value(double x) { return x * sigmoid(x); }
/// d silu / dx = s * (1 + x * (1 - s)).
inline double silu_slope(double x) {
  const double s = sigmoid(x);
  return s * (1.0 + x * (1.0 - s));
}

/// x * (1 + erf(x / sqrt 2)) / 2, or x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) / 2.
/// Source: Hendrycks & Gimpel 2016, arXiv:1606.08415.
inline double gelu_value(double x, bool tanh_form) {
  if (!tanh_form) return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  const double root = std::sqrt(2.0 / std::numbers::pi);
  return 0.5 * x * (1.0 + std::tanh(root * (x + 0.044715 * x * x * x)));
}

inline double gelu_slope(double x, bool tanh_form) {
  if (!tanh_form) {
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
    return 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) + x * density;
  }
  const double root = std::sqrt(2.0 / std::numbers::pi);
  const double t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * root * (1.0 + 3.0 * 0.044715 * x * x);
}

}  // namespace plimsoll::ops
