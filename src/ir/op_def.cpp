#include "ir/op_def.h"

#include <algorithm>

namespace plimsoll::ir {

OpTypes op_types(const Graph& graph, const Op& op) {
  OpTypes types{op.def->name, {}, {}, op.attrs};
  types.inputs.reserve(op.inputs.size());
  types.outputs.reserve(op.outputs.size());
  for (const ValueId v : op.inputs)
    types.inputs.push_back(v.valid() ? graph.type(v) : TensorType{DType::kF32, Shape{}});
  for (const ValueId v : op.outputs) types.outputs.push_back(graph.type(v));
  return types;
}

std::vector<Alias> op_consumes(const Op& op) {
  if (op.def->consumes_variadic == nullptr && op.def->consumes.empty() && op.def->accumulators.empty())
    return {};
  std::vector<Alias> aliases =
      op.def->consumes_variadic != nullptr ? op.def->consumes_variadic(op) : op.def->consumes;
  aliases.insert(aliases.end(), op.def->accumulators.begin(), op.def->accumulators.end());
  std::erase_if(aliases, [&](const Alias& a) {
    const auto input = static_cast<size_t>(a.input);
    return input >= op.inputs.size() || !op.inputs[input].valid() ||
           static_cast<size_t>(a.output) >= op.outputs.size();
  });
  return aliases;
}

int accumulator_operand(const Op& op, size_t output) {
  const auto& all = op.def->accumulators;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Alias& a) { return static_cast<size_t>(a.output) == output; });
  return found == all.end() ? -1 : found->input;
}

const OutputDtype* output_dtype(const OpDef& def, size_t output) {
  const auto found = std::find_if(def.output_dtypes.begin(), def.output_dtypes.end(),
                                  [&](const auto& o) { return static_cast<size_t>(o.output) == output; });
  return found == def.output_dtypes.end() ? nullptr : &*found;
}

Cost op_cost(const Graph& graph, const Op& op) {
  const OpTypes types = op_types(graph, op);
  if (op.def->cost != nullptr) return op.def->cost(types);
  if (op.def->is_view) return {};
  Cost cost;
  for (size_t i = 0; i < types.inputs.size(); ++i)
    if (types.has(i)) cost.bytes += static_cast<double>(types.inputs[i].bytes().count);
  for (const auto& t : types.outputs) cost.bytes += static_cast<double>(t.bytes().count);
  return cost;
}

}  // namespace plimsoll::ir
