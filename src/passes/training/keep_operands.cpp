#include "passes/training/keep_operands.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/op_def.h"
#include "ops/op_list.h"
#include "passes/training/fp8.h"
#include "passes/training/fp8_dump.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::ValueId;

/// Operands by the states that keep them; the first of a name counts.
class KeptOperands {
 public:
  explicit KeptOperands(const ir::Graph& graph) : graph_(graph) {}

  /// y = x w, in forward.
  void add_forward(const Op& op) {
    const std::string module = module_of(op);
    modules_[op.inputs[0].index].insert(module);
    kept_.emplace("t." + module + ".x", op.inputs[0]);
    kept_.emplace("t." + module + ".w", op.inputs[1]);
  }
  /// dx = dy w.
  void add_input_gradient(const Op& op) { kept_.emplace("t." + module_of(op) + ".dy", op.inputs[0]); }
  /// dw of x and dy; an input of several modules does not say whose it is.
  void add_weight_gradient(const Op& op) {
    const auto modules = modules_.find(op.inputs[0].index);
    if (modules == modules_.end() || modules->second.size() > 1) return;
    kept_.emplace("t." + *modules->second.begin() + ".dy", op.inputs[1]);
  }
  [[nodiscard]] const std::map<std::string, ValueId>& kept() const { return kept_; }

 private:
  [[nodiscard]] std::string module_of(const Op& op) const {
    return operand_module(graph_.op(graph_.value(op.inputs[1]).producer), op.layer);
  }

  const ir::Graph& graph_;
  std::map<int32_t, std::set<std::string>> modules_;  // by the value that is their input
  std::map<std::string, ValueId> kept_;
};

/// Of the `count` assignments at the program's end those of states go behind forward: an update writes over
/// them.
void keep_weights_early(ir::Graph& graph, size_t count, ir::OpId last_forward_op) {
  std::vector<ir::OpId> order = graph.order();
  const auto first = order.end() - static_cast<std::ptrdiff_t>(count);
  const auto rest = std::stable_partition(first, order.end(), [&](ir::OpId id) {
    return graph.op(graph.value(graph.op(id).inputs[0]).producer).def->state == ir::StateAccess::kRead;
  });
  std::rotate(std::next(std::find(order.begin(), first, last_forward_op)), first, rest);
  graph.set_order(std::move(order));
}

}  // namespace

Status keep_operands(ir::Graph& graph, ir::OpId last_forward_op) {
  if (!last_forward_op.valid()) return Ok{};
  KeptOperands operands(graph);
  bool forward = true;
  for (const ir::OpId id : graph.order()) {
    const Op& op = graph.op(id);
    if (op.block >= 0 && takes_fp8(graph, op)) {
      if (op.def->columns_to_rows != nullptr)
        operands.add_weight_gradient(op);
      else if (forward)
        operands.add_forward(op);
      else
        operands.add_input_gradient(op);
    }
    forward = forward && id != last_forward_op;
  }
  ir::Builder b(graph, ops::find_op);
  for (const auto& [name, value] : operands.kept()) {
    graph.declare_state({name, graph.type(value), ir::StateClass::kOutput});
    b.assign(name, value);
  }
  if (b.status()) keep_weights_early(graph, operands.kept().size(), last_forward_op);
  return b.status();
}

}  // namespace plimsoll::passes
