#include "ops/moment_codes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numerics/convert.h"
#include "ops/update_rules.h"

namespace plimsoll::ops {
namespace {

constexpr float kLargest = 448;           // of E4M3
constexpr float kRange = kLargest * 512;  // by its least number, 2^-9
constexpr float kFp16Largest = 32768;     // a power of two below fp16's end
/// A block of one magnitude has no range to stretch; its power is that of this one.
constexpr float kLeastRange = 2;

numerics::Format format_of(MomentCode code) {
  return code == MomentCode::kFp16 ? numerics::Format::kFp16 : numerics::Format::kE4m3;
}
float largest_of(MomentCode code) { return code == MomentCode::kFp16 ? kFp16Largest : kLargest; }

/// The least magnitude that is not 0; `most` where there is none.
float least_magnitude(std::span<const float> x, float most) {
  float least = most;
  for (const float value : x)
    if (value != 0) least = std::min(least, std::abs(value));
  return least;
}

/// A range beyond f32's largest number counts as that number: a power of 0 would make every code the largest.
float power_of(std::span<const float> x, float absmax) {
  const float range = absmax / least_magnitude(x, absmax);
  return std::log(kRange) / std::log(std::clamp(range, kLeastRange, std::numeric_limits<float>::max()));
}

}  // namespace

int64_t moment_code_bytes(MomentCode code) { return code == MomentCode::kFp16 ? 2 : 1; }

MomentScale encode_moments(MomentCode code, std::span<const float> x, std::span<std::byte> codes) {
  MomentScale scale;
  for (const float value : x) scale.absmax = std::max(scale.absmax, std::abs(value));
  const float divisor = scale.absmax > 0 ? scale.absmax : 1.0F;
  if (code == MomentCode::kExpanded && scale.absmax > 0) scale.power = power_of(x, scale.absmax);
  constexpr size_t kPiece = 128;
  float scaled[kPiece];
  const auto width = static_cast<size_t>(moment_code_bytes(code));
  for (size_t begin = 0; begin < x.size(); begin += kPiece) {
    const size_t n = std::min(kPiece, x.size() - begin);
    for (size_t i = 0; i < n; ++i) {
      const float share = x[begin + i] / divisor;
      scaled[i] = largest_of(code) * (code == MomentCode::kExpanded
                                          ? std::copysign(std::pow(std::abs(share), scale.power), share)
                                          : share);
    }
    numerics::encode(format_of(code), {scaled, n}, codes.subspan(begin * width, n * width),
                     {.saturate = true});
  }
  return scale;
}

void decode_moments(MomentCode code, const MomentScale& scale, std::span<const std::byte> codes,
                    std::span<float> x) {
  if (scale.absmax == 0) return std::fill(x.begin(), x.end(), 0.0F);  // so a state begins
  numerics::decode(format_of(code), codes, x);
  const float unit = scale.absmax / largest_of(code);
  if (code != MomentCode::kExpanded) {
    for (float& value : x) value *= unit;
    return;
  }
  const float root = 1.0F / scale.power;
  for (float& value : x)
    value = std::copysign(scale.absmax * std::pow(std::abs(value) / kLargest, root), value);
}

void adamw_block(const float* group, std::span<float> gradient, std::span<float> m, std::span<float> v) {
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float g = gradient[i];
    m[i] = m[i] * group[kAdamwBeta1] + g * group[kAdamwOneMinusBeta1];
    v[i] = v[i] * group[kAdamwBeta2] + g * group[kAdamwOneMinusBeta2] * g;
    gradient[i] = group[kAdamwStepSize] *
                  (m[i] / (std::sqrt(v[i]) / group[kAdamwSqrtCorrection2] + group[kAdamwEpsilon]));
  }
}

}  // namespace plimsoll::ops
