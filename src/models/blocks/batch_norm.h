// BatchNorm in a recorded and an applied part. Statistics and running values are recorded once per
// micro-batch; backward may recompute what is normalised with them.
//
//   x ─► batch_statistics ─► mean, variance ─► running values (states, written by forward alone)
//   │                             │
//   └──────────► batch_norm ◄─────┘  + residual, ReLU
#pragma once

#include <string_view>

#include "models/model.h"

namespace plimsoll::models {

struct BatchNormCall {
  ir::ValueId residual = {};  ///< added before the activation; invalid: none
  bool relu = false;
  bool training = false;
};

/// y = (x - mean) / sqrt(variance + eps) * weight + bias, with the parameters "<name>.weight", "<name>.bias"
/// of a layer of the model (Model::add_batch_norm). In training with batch statistics mean and (biased)
/// variance are those of x, or of the x of all of the layer's ranks, and running ← (1 - momentum) running +
/// momentum (mean, unbiased variance); otherwise they are the running values. x [N, ..., channels].
[[nodiscard]] ir::ValueId batch_norm(ir::Builder& b, const Model& model, std::string_view name, ir::ValueId x,
                                     const BatchNormCall& call);

}  // namespace plimsoll::models
