// A model that no family has yet: in its one block a linear map, and experts as a stack of maps.
#pragma once

#include "models/model.h"

namespace plimsoll::models {

class StackedModel final : public Model {
 public:
  StackedModel() {
    const auto add = [&](const char* name, ParameterKind kind, ir::Shape shape) {
      parameters_.push_back({name, kind, shape, Init::kNormal, 0.02, {{name, 0, shape}}});
    };
    add("embed.weight", ParameterKind::kTable, {31, 8});
    add("layers.0.norm.weight", ParameterKind::kVector, {8});
    add("layers.0.router.weight", ParameterKind::kLinear, {4, 8});
    add("layers.0.experts.up_proj.weight", ParameterKind::kStack, {4, 16, 8});
    for (size_t p = 1; p < parameters_.size(); ++p) parameters_[p].block = 0;
  }
};

}  // namespace plimsoll::models
