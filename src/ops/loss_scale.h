// The loss scale of fp16 training and its two ops. Gradients of small values vanish in fp16; the loss is
// multiplied by a scale before it is differentiated, and the update divides by it again (Micikevicius et al.
// 2018, arXiv:1710.03740). The scale falls where a gradient overflows and rises after a run of clean steps,
// step for step as torch.amp.GradScaler's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ir/builder.h"

namespace plimsoll::ops {

/// The scaler's state f32[3]. The count is exact below 2^24.
enum ScalerField : int64_t {
  kScale = 0,       ///< what the loss is multiplied with
  kCleanSteps = 1,  ///< since the scale last moved
  kSkipped = 2,     ///< 1 where the last step was skipped
  kScalerFields = 3,
};

/// How the scale moves. Both factors 1: a static scale.
struct LossScaling {
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;
};

/// The state after a step whose gradients were finite or not. A growth past f32's range is dropped, the count
/// starts again all the same.
std::array<float, kScalerFields> next_scaler(std::array<float, kScalerFields> scaler,
                                             const LossScaling& scaling, bool finite);

struct Unscaled {
  ir::ValueId norm;    ///< f32[1]: norm / scale
  ir::ValueId factor;  ///< f32[1]: what a gradient is multiplied with; NaN: the step is skipped
};
/// norm f32[1] of the scaled gradients, scaler f32[3]. factor = min(1, max_norm / (norm / scale + 1e-6)) /
/// scale, without max_norm 1 / scale; NaN where the norm is not finite. Op `unscale`(norm, scaler)
/// {max_norm?}.
Unscaled unscale(ir::Builder& b, ir::ValueId norm, ir::ValueId scaler, std::optional<double> max_norm);
/// The scaler after the step, see next_scaler; consumes `scaler`. Op `next_scale`(scaler, norm)
/// {growth_factor, backoff_factor, growth_interval}.
ir::ValueId next_scale(ir::Builder& b, ir::ValueId scaler, ir::ValueId norm, const LossScaling& scaling);

/// Attributes of the two ops, as their kernels read them. Without max_norm: infinity.
double max_norm_of(const ir::Attrs& attrs);
LossScaling scaling_of(const ir::Attrs& attrs);

}  // namespace plimsoll::ops
