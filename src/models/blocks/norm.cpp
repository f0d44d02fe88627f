#include "models/blocks/norm.h"

#include "ops/ops.h"

namespace plimsoll::models {

ir::ValueId rms_norm(ir::Builder& b, const Model& model, ir::ValueId x, const std::string& weight,
                     double eps) {
  return ops::rms_norm(b, x, model.read_parameter(b, weight), eps).y;
}

ir::ValueId layer_norm(ir::Builder& b, const Model& model, ir::ValueId x, const std::string& name,
                       double eps) {
  const ir::ValueId bias = model.read_parameter(b, name + ".bias");
  return ops::layer_norm(b, x, model.read_parameter(b, name + ".weight"), bias, eps).y;
}

ir::ValueId layer_norm_without_bias(ir::Builder& b, const Model& model, ir::ValueId x,
                                    const std::string& name, double eps) {
  const ir::ValueId zeros = ops::fill(b, {b.type(x).shape.dim(-1)}, 0);
  return ops::layer_norm(b, x, model.read_parameter(b, name + ".weight"), zeros, eps).y;
}

}  // namespace plimsoll::models
