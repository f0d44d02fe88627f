#include "models/linear.h"

namespace plimsoll::models {

ir::ValueId linear(ir::Builder& b, const Model& model, const LinearSpec& spec, ir::ValueId x) {
  const ir::ValueId weight = model.read_parameter(b, spec.weight);
  const ir::ValueId bias = spec.bias.empty() ? ir::ValueId{} : model.read_parameter(b, spec.bias);
  return ops::linear(b, x, weight, bias, spec.transposed);
}

}  // namespace plimsoll::models
