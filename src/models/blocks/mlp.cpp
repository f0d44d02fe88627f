#include "models/blocks/mlp.h"

#include "models/blocks/dropout.h"

namespace plimsoll::models {

ir::ValueId mlp(ir::Builder& b, const Model& model, const MlpSpec& spec, ir::ValueId x,
                const Activation& activation, ir::ValueId noise) {
  const ir::ValueId inner = activate(b, linear(b, model, spec.up, x, noise), activation);
  return linear(b, model, spec.down, inner, noise);
}

ir::ValueId gelu_mlp(ir::Builder& b, const Model& model, const MlpSpec& spec, ir::ValueId x, ops::Gelu form,
                     ir::ValueId noise) {
  return mlp(b, model, spec, x, {Activation::Kind::kGelu, form}, noise);
}

ir::ValueId gated_mlp(ir::Builder& b, const Model& model, const MlpSpec& spec, ir::ValueId x, int64_t inner,
                      const Activation& activation, ir::ValueId noise, double dropped) {
  const auto parts = ops::split(b, linear(b, model, spec.up, x, noise), {inner, inner});
  const ir::ValueId gated = ops::mul(b, activate(b, parts[0], activation), parts[1]);
  return linear(b, model, spec.down, dropout(b, noise, gated, dropped), noise);
}

}  // namespace plimsoll::models
