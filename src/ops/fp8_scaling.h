// The state of delayed scaling, and the two ops that move it: every operand of a product in FP8 has a slot
// with a scale, which quantise reads, and a history of largest magnitudes, whose first row collects those of
// the step. The maximum is over the effective batch, so the split into micro-batches changes no scale.
//
//   slots of n products: input and weight of product i at 2 i and 2 i + 1, gradients from 2 n on
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/builder.h"
#include "numerics/fp8_recipes.h"

namespace plimsoll::ops {

/// f32[slots] and f32[amax_history_len, slots].
inline constexpr std::string_view kFp8ScaleState = "fp8.scale", kFp8HistoryState = "fp8.amax_history";
constexpr int64_t fp8_slots(int64_t products) { return 3 * products; }
constexpr bool is_gradient_slot(int64_t slot, int64_t slots) { return slot >= slots / 3 * 2; }

/// Their declarations; both are saved with the optimizer's states.
ir::StateDecl fp8_scale_state(int64_t slots);
ir::StateDecl fp8_history_state(int64_t slots, int64_t history_len);

/// history with its first row raised to the magnitudes, one of `slots` each; NaN is passed over. Consumes
/// history. Op `record_amax`(history, amax...) {slots}.
ir::ValueId record_amax(ir::Builder& b, ir::ValueId history, const std::vector<ir::ValueId>& amax,
                        std::vector<int64_t> slots);
/// Behind the last product of a step: both states as the next step has them. Op `next_fp8_scales`(history,
/// scales) {margin, most_recent, hybrid} -> history, scales.
struct Fp8Scales {
  ir::ValueId history, scales;
};
Fp8Scales next_fp8_scales(ir::Builder& b, ir::ValueId history, ir::ValueId scales,
                          const numerics::DelayedScaling& scaling, bool hybrid);

/// What the two ops do, in place.
void raise_amax(std::span<float> history, std::span<const int64_t> slots, std::span<const float> amax);
void advance_scales(const ir::Attrs& attrs, std::span<float> history, std::span<float> scales);

}  // namespace plimsoll::ops
