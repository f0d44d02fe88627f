// Attributes first, then one walk along the order: result types again where an op or an operand has changed.
#include "passes/training/store_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

/// Gives the result of an op that dtype, and says that the op is changed.
Status store(ir::Graph& graph, ir::ValueId v, ir::DType dtype, std::vector<bool>& is_changed) {
  if (graph.type(v).dtype == dtype) return Ok{};
  const ir::OpId producer = graph.value(v).producer;
  ir::Op& op = graph.op(producer);
  if (const auto* stored = ir::output_dtype(*op.def, static_cast<size_t>(graph.value(v).result_index))) {
    op.attrs.set(stored->attr, std::string(ir::name(dtype)));
    is_changed[static_cast<size_t>(producer.index)] = true;
    return Ok{};
  }
  const auto is_computed_for_it = [&, uses = graph.uses()](ir::ValueId part) {
    return uses[static_cast<size_t>(part.index)].size() == 1 && graph.value(part).producer.valid();
  };
  if (op.def->elements != ir::Elements::kJoined || !std::ranges::all_of(op.inputs, is_computed_for_it))
    return Error{
        .what = fmt::format("a gradient from '{}' cannot be stored as {}", op.def->name, ir::name(dtype)),
        .where = op.layer};
  for (const ir::ValueId part : op.inputs) PLIMSOLL_TRY(store(graph, part, dtype, is_changed));
  return Ok{};
}

}  // namespace

Status store_gradients(ir::Graph& graph, std::span<const ir::ValueId> gradients, ir::DType dtype) {
  std::vector<bool> is_changed(graph.num_ops(), false), has_new_type(graph.num_values(), false);
  for (const ir::ValueId v : gradients) PLIMSOLL_TRY(store(graph, v, dtype, is_changed));
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    const bool affected = is_changed[static_cast<size_t>(id.index)] ||
                          std::any_of(op.inputs.begin(), op.inputs.end(), [&](ir::ValueId v) {
                            return v.valid() && has_new_type[static_cast<size_t>(v.index)];
                          });
    if (!affected || op.def->infer == nullptr) continue;
    ir::OpTypes types = ir::op_types(graph, op);
    types.outputs.clear();
    auto inferred = op.def->infer(types);
    if (!inferred) return std::move(inferred).error().at(op.layer);
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      if (graph.type(op.outputs[i]) == (*inferred)[i]) continue;
      graph.value(op.outputs[i]).type = (*inferred)[i];
      has_new_type[static_cast<size_t>(op.outputs[i].index)] = true;
    }
  }
  return Ok{};
}

}  // namespace plimsoll::passes
