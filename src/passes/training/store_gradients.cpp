// Attributes first, then one walk along the order: result types again where an op or an operand has changed.
#include "passes/training/store_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/lists.h"
#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

/// Gives results of ops a dtype.
class Stores {
 public:
  Stores(ir::Graph& graph, ir::DType dtype)
      : graph_(graph), dtype_(dtype), uses_(graph.uses()), is_changed_(graph.num_ops(), false) {}
  [[nodiscard]] const std::vector<bool>& is_changed() const { return is_changed_; }

  Status operator()(ir::ValueId v) {
    if (graph_.type(v).dtype == dtype_) return Ok{};
    const ir::OpId producer = graph_.value(v).producer;
    ir::Op& op = graph_.op(producer);
    if (const auto* stored = ir::output_dtype(*op.def, static_cast<size_t>(graph_.value(v).result_index))) {
      op.attrs.set(stored->attr, std::string(ir::name(dtype_)));
      is_changed_[static_cast<size_t>(producer.index)] = true;
      return Ok{};
    }
    // Gradients of parts side by side, which nothing else reads.
    const bool joins =
        op.def->elements == ir::Elements::kJoined && std::ranges::all_of(op.inputs, [&](ir::ValueId part) {
          return uses_[static_cast<size_t>(part.index)].size() == 1 && graph_.value(part).producer.valid();
        });
    if (!joins)
      return Error{
          .what = fmt::format("a gradient from '{}' cannot be stored as {}", op.def->name, ir::name(dtype_)),
          .where = op.layer};
    for (const ir::ValueId part : std::vector<ir::ValueId>(op.inputs.begin(), op.inputs.end()))
      PLIMSOLL_TRY((*this)(part));
    return Ok{};
  }

 private:
  ir::Graph& graph_;
  const ir::DType dtype_;
  const Lists<ir::OpId> uses_;
  std::vector<bool> is_changed_;
};

}  // namespace

Status store_gradients(ir::Graph& graph, std::span<const ir::ValueId> gradients, ir::DType dtype) {
  Stores store(graph, dtype);
  for (const ir::ValueId v : gradients) PLIMSOLL_TRY(store(v));
  const std::vector<bool>& is_changed = store.is_changed();
  std::vector<bool> has_new_type(graph.num_values(), false);
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
