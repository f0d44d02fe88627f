// Rounding by definition, slow: every value of a format is listed, the nearest is looked for in double.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "hwy/targets.h"
#include "numerics/formats.h"

namespace plimsoll::numerics {

/// A sign-exponent-mantissa format, written down from its specification.
struct Definition {
  Format format;
  int exponent_bits, mantissa_bits;
  double max;
  bool
      ieee_specials;  ///< the highest exponent holds infinity and NaN; E4M3: its last code is NaN; E2M1: none
};

inline constexpr Definition kDefinitions[] = {
    {Format::kFp16, 5, 10, 65504, true}, {Format::kBf16, 8, 7, 0x1.fep127, true},
    {Format::kE4m3, 4, 3, 448, false},   {Format::kE5m2, 5, 2, 57344, true},
    {Format::kE2m1, 2, 1, 6, false},
};

/// Codes and numbers without sign, ascending, up to the largest finite one.
inline std::vector<double> finite_values(const Definition& d) {
  std::vector<double> values;
  const int bias = (1 << (d.exponent_bits - 1)) - 1;
  for (int code = 0;; ++code) {
    const int exponent = code >> d.mantissa_bits, mantissa = code & ((1 << d.mantissa_bits) - 1);
    const double fraction = std::ldexp(mantissa, -d.mantissa_bits);
    const double value =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    if (value > d.max) return values;
    values.push_back(value);
  }
}

/// The code that rounding to nearest even gives, NaN apart.
inline uint32_t nearest_code(const Definition& d, const std::vector<double>& values, float x, bool saturate) {
  const double a = std::abs(double{x});
  const uint32_t sign = std::signbit(x) ? 1U << (d.exponent_bits + d.mantissa_bits) : 0U;
  const bool stays = saturate || d.format == Format::kE2m1;
  const auto beyond = static_cast<uint32_t>(values.size() - (stays ? 1 : 0));
  const auto above = std::lower_bound(values.begin(), values.end(), a);
  const auto high = static_cast<uint32_t>(above - values.begin());
  if (above == values.end()) {
    // What the next code would be, were there one.
    const double last = values.back(), step = last - values[values.size() - 2];
    const bool last_is_even = (values.size() - 1) % 2 == 0;
    if (a < last + step / 2 || (a == last + step / 2 && last_is_even)) return sign | (high - 1);
    return sign | beyond;
  }
  if (*above == a || high == 0) return sign | high;
  const double low_gap = a - values[high - 1], high_gap = *above - a;
  if (low_gap != high_gap) return sign | (low_gap < high_gap ? high - 1 : high);
  return sign | (high % 2 == 0 ? high : high - 1);
}

/// Numbers where rounding goes wrong: all values, all ties and their neighbours, edges of f32, NaN payloads.
inline std::vector<float> adversarial(const std::vector<double>& values) {
  std::vector<float> x;
  const auto add = [&](float v) {
    for (const float each : {v, std::nextafterf(v, 0.0F), std::nextafterf(v, HUGE_VALF)})
      x.insert(x.end(), {each, -each});
  };
  for (size_t i = 0; i < values.size(); ++i) {
    add(static_cast<float>(values[i]));
    if (i > 0) add(static_cast<float>((values[i - 1] + values[i]) / 2));
  }
  if (values.size() > 1)  // half a step beyond the last
    add(static_cast<float>(values.back() + (values.back() - values[values.size() - 2]) / 2));
  for (const uint32_t bits : {0U, 1U, 2U, 0x003FFFFFU, 0x00400000U, 0x00400001U, 0x005FFFFFU, 0x00600000U,
                              0x007FFFFFU, 0x00800000U, 0x7F7FFFFFU, 0x7F7F8000U, 0x7F800000U, 0x7F800001U,
                              0x7FC00000U, 0x7FBFFFFFU, 0x7FFFFFFFU, 0x7F812345U, 0x7FD55555U})
    x.insert(x.end(), {std::bit_cast<float>(bits), std::bit_cast<float>(bits | 0x80000000U)});
  return x;
}

/// Bits of every kind, the same each time.
inline std::vector<float> random_floats(size_t n, uint64_t seed = 1) {
  std::vector<float> x(n);
  for (float& v : x) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    v = std::bit_cast<float>(static_cast<uint32_t>(seed >> 32));
  }
  return x;
}

/// Numbers of ordinary size, roughly normal.
inline std::vector<float> ordinary_floats(size_t n, uint64_t seed = 7) {
  std::vector<float> x(n);
  for (float& v : x) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      sum += static_cast<double>(seed >> 40) * 0x1p-24 - 0.5;
    }
    v = static_cast<float>(sum);
  }
  return x;
}

/// The instruction sets at hand, by number of the target; each is switched on for its own round.
class EachTarget {
 public:
  ~EachTarget() { choose(0); }
  template <class Body>
  void run(Body&& body) {
    for (int64_t disabled : {int64_t{0}, int64_t{HWY_AVX2 - 1}, int64_t{2 * HWY_AVX2 - 1}}) {
      choose(disabled);
      body(disabled == 0 ? "best" : disabled == HWY_AVX2 - 1 ? "avx2" : "portable");
    }
  }

 private:
  static void choose(int64_t disabled) {
    hwy::DisableTargets(disabled);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

}  // namespace plimsoll::numerics
