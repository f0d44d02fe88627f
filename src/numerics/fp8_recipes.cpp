#include "numerics/fp8_recipes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plimsoll::numerics {

std::string_view name(Fp8Recipe recipe) { return kFp8Recipes[static_cast<size_t>(recipe)]; }

std::optional<Fp8Recipe> find_fp8_recipe(std::string_view name) {
  const auto* const at = std::ranges::find(kFp8Recipes, name);
  if (at == std::end(kFp8Recipes)) return std::nullopt;
  return static_cast<Fp8Recipe>(at - std::begin(kFp8Recipes));
}

OperandForm operand_form(const Fp8Options& options, OperandRole role, bool across) {
  const bool is_weight = role == OperandRole::kWeight, is_gradient = role == OperandRole::kGradient;
  switch (options.recipe) {
    case Fp8Recipe::kDelayed:
    case Fp8Recipe::kCurrent:
      return {.scheme = is_gradient && options.hybrid ? Scheme::kE5m2 : Scheme::kE4m3};
    case Fp8Recipe::kBlock:
      return {.scheme = is_weight ? Scheme::kFp8Block128x128 : Scheme::kFp8Block1x128};
    case Fp8Recipe::kMxfp8:
      return {.scheme = Scheme::kMxfp8};
    case Fp8Recipe::kNvfp4:
      break;
  }
  if (is_weight) return {.scheme = Scheme::kNvfp4Block16x16};
  return {.scheme = Scheme::kNvfp4,
          .hadamard = across && options.hadamard,
          .stochastic = is_gradient && options.stochastic};
}

TensorScale given_scale(float amax, float scale) {
  if (scale == 0) scale = 1;
  return {amax, scale, 1.0F / scale};
}

float next_delayed_scale(const DelayedScaling& scaling, float largest_code, std::span<const float> history,
                         size_t stride, float scale) {
  float amax = 0;
  for (size_t i = 0; i < history.size(); i += stride) {
    if (history[i] > amax) amax = history[i];  // false for NaN
    if (scaling.most_recent) break;
  }
  if (!(amax > 0) || !std::isfinite(amax)) return scale;
  const float next = std::ldexp(largest_code, -static_cast<int>(scaling.margin)) / amax;
  return std::min(next, std::numeric_limits<float>::max());
}

void roll_history(std::span<float> history, size_t stride) {
  const float now = history[0];
  if (now == 0) return;
  size_t i = 0;
  for (; i + stride < history.size(); i += stride) history[i] = history[i + stride];
  history[i] = now;
  history[0] = 0;
}

}  // namespace plimsoll::numerics
