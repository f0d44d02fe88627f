// The rule of a parameter, of whichever kind: of its elements, or of the tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "ops/tensor_rules.h"
#include "ops/update_rules.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {

/// A state of a rule.
struct StateForm {
  std::string_view name;
  ir::TensorType type;
};

struct Rule {
  const ops::UpdateRule* elementwise = nullptr;
  const ops::TensorRule* of_tensor = nullptr;

  explicit Rule(std::string_view name)
      : elementwise(ops::find_update_rule(name)), of_tensor(ops::find_tensor_rule(name)) {
    PLIMSOLL_CHECK(elementwise != nullptr || of_tensor != nullptr, std::string(name));
  }
  [[nodiscard]] std::string_view name() const {
    return elementwise != nullptr ? elementwise->name : of_tensor->name;
  }
  [[nodiscard]] std::vector<StateForm> states(const ops::RuledTensor& tensor, ir::DType moments) const {
    std::vector<StateForm> forms;
    if (elementwise != nullptr) {
      for (const std::string_view name : elementwise->states)
        forms.push_back({name, {moments, tensor.shape}});
    } else {
      for (const ops::RuleState& s : of_tensor->states)
        forms.push_back({s.name, {s.dtype.value_or(moments), s.shape_of(tensor)}});
    }
    return forms;
  }
};

/// Empty where the optimizer has none for the parameter.
inline std::string_view rule_of(const OptimizerDef& def, const OptimizerOptions& options,
                                const ir::Shape& shape, const Update& u) {
  const std::string_view rule = def.rule({shape, u.kind, u.is_hidden, options.momentum});
  const bool is_coded = rule == "adamw" && shape.num_elements() >= kLeastCodedElements;
  return is_coded && options.state.codes != MomentCodes::kNone
             ? ops::fp8_rule_name(options.state.codes == MomentCodes::kCoat)
             : rule;
}
/// The whole parameter as its rule sees it.
inline ops::RuledTensor ruled_tensor(const OptimizerOptions& options, const ir::Shape& shape,
                                     const Update& u) {
  ops::RuledTensor tensor{shape, u.parts, options.muon_ns_steps};
  if (tensor.parts.empty()) tensor.parts = {shape.dim(0)};
  return tensor;
}
/// "<rule>.<state>.<parameter>"
std::string state_name(const Rule& rule, std::string_view state, std::string_view parameter);

}  // namespace plimsoll::optimizers
