// Gradient norm and clipping (optimizer.cpp; update_rules.h has the updates). The conventions are those of
// ops.h.
#pragma once

#include <vector>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

// ---- optimizer (optimizer.cpp; update_rules.h has the updates)

/// f32[1]: sum of squares in a fixed grid (chunks of 16,384 elements, in double, in order). Op
/// `sum_squares`(x). Over many tensors: `sum_squares_sweep`(x...) -> f32[n]. `rounded`: x is rounded to that
/// dtype first, where it comes in another; f32: as it comes.
ValueId sum_squares(Builder& b, ValueId x, ir::DType rounded = ir::DType::kF32);
/// sqrt of the sum of f32[1] operands, in order, in double. Op `global_norm`(x...).
ValueId global_norm(Builder& b, std::vector<ValueId> squares);
/// min(1, max_norm / (norm + 1e-6)). Op `clip_scale`(norm) {max_norm}.
ValueId clip_scale(Builder& b, ValueId norm, double max_norm);

}  // namespace plimsoll::ops
