// Attributes first, then one walk along the order: result types again where an op or an operand has changed.
#include "passes/training/store_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/op_def.h"

namespace plimsoll::passes {

Status store_gradients(ir::Graph& graph, std::span<const ir::ValueId> gradients, ir::DType dtype) {
  std::vector<bool> is_changed(graph.num_ops(), false), has_new_type(graph.num_values(), false);
  for (const ir::ValueId v : gradients) {
    if (graph.type(v).dtype == dtype) continue;
    ir::Op& op = graph.op(graph.value(v).producer);
    const auto* stored = ir::output_dtype(*op.def, static_cast<size_t>(graph.value(v).result_index));
    if (stored == nullptr)
      return Error{
          .what = fmt::format("a gradient from '{}' cannot be stored as {}", op.def->name, ir::name(dtype)),
          .where = op.layer};
    op.attrs.set(stored->attr, std::string(ir::name(dtype)));
    is_changed[static_cast<size_t>(graph.value(v).producer.index)] = true;
  }
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
