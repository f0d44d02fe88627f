#include "models/blocks/mlp.h"

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

ir::ValueId swiglu_mlp(ir::Builder& b, const Model& model, const MlpSpec& spec, ir::ValueId x, int64_t inner,
                       ir::ValueId noise) {
  const auto parts = ops::split(b, linear(b, model, spec.up, x, noise), {inner, inner});
  return linear(b, model, spec.down, ops::mul(b, ops::silu(b, parts[0]), parts[1]), noise);
}

}  // namespace plimsoll::models
