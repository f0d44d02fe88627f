// Norms by the names of their parameters.
#pragma once

#include <string>

#include "models/model.h"

namespace plimsoll::models {

/// ops::rms_norm of the last axis by the parameter `weight`.
[[nodiscard]] ir::ValueId rms_norm(ir::Builder& b, const Model& model, ir::ValueId x,
                                   const std::string& weight, double eps);

/// ops::layer_norm of the last axis by the parameters "<name>.weight" and "<name>.bias".
[[nodiscard]] ir::ValueId layer_norm(ir::Builder& b, const Model& model, ir::ValueId x,
                                     const std::string& name, double eps);

/// The same by "<name>.weight" alone: the bias is zeros that nothing learns.
[[nodiscard]] ir::ValueId layer_norm_without_bias(ir::Builder& b, const Model& model, ir::ValueId x,
                                                  const std::string& name, double eps);

}  // namespace plimsoll::models
