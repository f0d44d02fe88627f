// The feed-forward parts of a layer.
#pragma once

#include "models/activation.h"
#include "models/linear.h"
#include "ops/ops.h"

namespace plimsoll::models {

/// Two linear maps by name, [hidden -> inner] and [inner -> hidden].
struct MlpSpec {
  LinearSpec up, down;
};

/// down(activation(up(x))). `noise` as linear's.
[[nodiscard]] ir::ValueId mlp(ir::Builder& b, const Model& model, const MlpSpec& spec, ir::ValueId x,
                              const Activation& activation, ir::ValueId noise);

/// The same with a form of gelu.
[[nodiscard]] ir::ValueId gelu_mlp(ir::Builder& b, const Model& model, const MlpSpec& spec, ir::ValueId x,
                                   ops::Gelu form, ir::ValueId noise);

/// A gated linear unit, Shazeer 2020, arXiv:2002.05202: down(dropout(activation(gate(x)) * up(x))), where
/// spec.up holds the `inner` rows of the gate and behind them those of up. SwiGLU with silu, GeGLU with gelu.
[[nodiscard]] ir::ValueId gated_mlp(ir::Builder& b, const Model& model, const MlpSpec& spec, ir::ValueId x,
                                    int64_t inner, const Activation& activation, ir::ValueId noise,
                                    double dropped = 0);

}  // namespace plimsoll::models
