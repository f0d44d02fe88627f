#include "models/blocks/mlp.h"

namespace plimsoll::models {

ir::ValueId gelu_mlp(ir::Builder& b, const Model& model, const MlpSpec& spec, ir::ValueId x, ops::Gelu form,
                     ir::ValueId noise) {
  const ir::ValueId inner = ops::gelu(b, linear(b, model, spec.up, x, noise), form);
  return linear(b, model, spec.down, inner, noise);
}

ir::ValueId swiglu_mlp(ir::Builder& b, const Model& model, const MlpSpec& spec, ir::ValueId x, int64_t inner,
                       ir::ValueId noise) {
  const auto parts = ops::split(b, linear(b, model, spec.up, x, noise), {inner, inner});
  return linear(b, model, spec.down, ops::mul(b, ops::silu(b, parts[0]), parts[1]), noise);
}

}  // namespace plimsoll::models
