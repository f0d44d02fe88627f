// See interpreter.h.
#include "backends/reference/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "ir/op_query.h"
#include "ops/rounding.h"

namespace plimsoll::reference {

using ir::Graph;
using ir::Op;
using ir::RefTensor;
using ir::ValueId;

void Interpreter::set(std::string_view state, RefTensor value) {
  round(value);
  states_.insert_or_assign(std::string(state), std::move(value));
}

const RefTensor* Interpreter::find(std::string_view state) const {
  const auto it = states_.find(state);
  return it == states_.end() ? nullptr : &it->second;
}

Status Interpreter::run(const Graph& graph) {
  values_.assign(graph.num_values(), {});
  for (const ir::OpId id : graph.order()) {
    Status status = run_op(graph, graph.op(id));
    if (!status) return std::move(status).error().at(graph.op(id).layer);
  }
  return Ok{};
}

Status Interpreter::run_op(const Graph& graph, const Op& op) {
  if (op.def->state == ir::StateAccess::kRead) {
    const std::string& name = op.attrs.str("name");
    const RefTensor* held = find(name);
    if (held == nullptr)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("state \"{}\" is read before it has a value", name)};
    if (held->type != graph.type(op.outputs[0]))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("state \"{}\" holds {}, the program declares {}", name, to_string(held->type),
                               to_string(graph.type(op.outputs[0])))};
    values_[static_cast<size_t>(op.outputs[0].index)] = *held;
    return Ok{};
  }
  if (op.def->state == ir::StateAccess::kAssign) return assign(graph, op);
  ir::RefContext context{op, {}, {}};
  for (const ValueId v : op.inputs) context.inputs.push_back(v.valid() ? &value(v) : nullptr);
  for (const ValueId v : op.outputs) {
    RefTensor& result = values_[static_cast<size_t>(v.index)];
    result = constant(graph.type(v), 0.0);
    context.outputs.push_back(&result);
  }
  PLIMSOLL_CHECK(op.def->reference != nullptr, std::string(op.def->name));
  op.def->reference(context);
  for (RefTensor* result : context.outputs) round(*result);
  return Ok{};
}

Status Interpreter::assign(const Graph& graph, const Op& op) {
  const std::string& name = op.attrs.str("name");
  const ir::AssignedElements elements = ir::assigned_elements(graph, op);
  if (!elements.is_window) {
    states_.insert_or_assign(name, value(op.inputs[0]));
    return Ok{};
  }
  const auto held = states_.find(name);
  if (held == states_.end())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a window of state \"{}\" is assigned before it has a value", name)};
  std::ranges::copy(value(op.inputs[0]).data, held->second.data.begin() + elements.begin);
  return Ok{};
}

void Interpreter::round(RefTensor& tensor) const {
  if (precision_ == Precision::kF64 || !ir::is_floating(tensor.type.dtype)) return;
  for (double& v : tensor.data) v = ops::rounded(v, tensor.type.dtype);
}

RefTensor tensor(ir::TensorType type, std::vector<double> data) {
  PLIMSOLL_CHECK(type.num_elements() == static_cast<int64_t>(data.size()), to_string(type));
  return {type, std::move(data)};
}

RefTensor constant(ir::TensorType type, double value) {
  return {type, std::vector<double>(static_cast<size_t>(type.num_elements()), value)};
}

}  // namespace plimsoll::reference
