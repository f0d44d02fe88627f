#include "ir/op_def.h"

namespace plimsoll::ir {

OpTypes op_types(const Graph& graph, const Op& op) {
  OpTypes types{op.def->name, {}, {}, op.attrs};
  for (const ValueId v : op.inputs)
    types.inputs.push_back(v.valid() ? graph.type(v) : TensorType{DType::kF32, Shape{}});
  for (const ValueId v : op.outputs) types.outputs.push_back(graph.type(v));
  return types;
}

std::vector<Alias> op_consumes(const Op& op) {
  std::vector<Alias> aliases =
      op.def->consumes_variadic != nullptr ? op.def->consumes_variadic(op) : op.def->consumes;
  std::erase_if(aliases, [&](const Alias& a) {
    const auto input = static_cast<size_t>(a.input);
    return input >= op.inputs.size() || !op.inputs[input].valid() ||
           static_cast<size_t>(a.output) >= op.outputs.size();
  });
  return aliases;
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
