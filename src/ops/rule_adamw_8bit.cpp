// The definition of adamw_8bit. It is in f32, step by step, as the kernel is: a code is the nearest of 256,
// and what lies between two of them must lie on the same side here and there.
#include <algorithm>
#include <cmath>

#include "numerics/dynamic_map.h"
#include "ops/tensor_rules.h"

namespace plimsoll::ops {
namespace {

using numerics::DynamicMap;

/// The states of one kind: codes and the blocks' largest magnitudes.
struct Codes {
  std::vector<double>&codes, &absmax;
  const DynamicMap& map;

  [[nodiscard]] float value(size_t i) const {
    return map.values[static_cast<size_t>(codes[i])] *
           static_cast<float>(absmax[i / static_cast<size_t>(kCodeBlock)]);
  }
  /// The block whose values `x` begin at element `first`.
  void put(size_t first, const std::vector<float>& x) const {
    float largest = 0;
    for (const float v : x) largest = std::max(largest, std::abs(v));
    absmax[first / static_cast<size_t>(kCodeBlock)] = static_cast<double>(largest);
    const float scale = largest > 0 ? 1.0F / largest : 0.0F;
    for (size_t i = 0; i < x.size(); ++i) codes[first + i] = map.code(x[i] * scale);
  }
};

void apply_8bit(TensorUpdate& u) {
  const auto field = [&](AdamwField f) { return static_cast<float>(u.group[f]); };
  const Codes m{u.states[0], u.states[2], numerics::signed_dynamic_map()};
  const Codes v{u.states[1], u.states[3], numerics::unsigned_dynamic_map()};
  for (size_t first = 0; first < u.param.size(); first += static_cast<size_t>(kCodeBlock)) {
    const size_t n = std::min(static_cast<size_t>(kCodeBlock), u.param.size() - first);
    std::vector<float> first_moments(n), second_moments(n);
    for (size_t i = 0; i < n; ++i) {
      const auto g = static_cast<float>(u.gradient[first + i]);
      const float mean = m.value(first + i) * field(kAdamwBeta1) + g * field(kAdamwOneMinusBeta1);
      const float square = v.value(first + i) * field(kAdamwBeta2) + g * field(kAdamwOneMinusBeta2) * g;
      const float step = field(kAdamwStepSize) *
                         (mean / (std::sqrt(square) / field(kAdamwSqrtCorrection2) + field(kAdamwEpsilon)));
      u.param[first + i] =
          static_cast<double>(static_cast<float>(u.param[first + i]) * field(kAdamwDecay) - step);
      first_moments[i] = mean;
      second_moments[i] = square;
    }
    m.put(first, first_moments);
    v.put(first, second_moments);
  }
}

ir::Shape blocks(const RuledTensor& tensor) { return {ceil_div(tensor.shape.num_elements(), kCodeBlock)}; }

}  // namespace

TensorRule adamw_8bit_rule() {
  return {.name = "adamw_8bit",
          .summary = "AdamW with moments of 8 bits",
          .states = {{"m", nullptr, ir::DType::kU8},
                     {"v", nullptr, ir::DType::kU8},
                     {"m_absmax", blocks, ir::DType::kF32},
                     {"v_absmax", blocks, ir::DType::kF32}},
          .num_fields = kAdamwFields,
          .flops = [](const RuledTensor& t) { return 30.0 * static_cast<double>(t.shape.num_elements()); },
          .apply = apply_8bit,
          .block_elements = kCodeBlock};
}

}  // namespace plimsoll::ops
