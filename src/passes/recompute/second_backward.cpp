#include "passes/recompute/second_backward.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/at.h"
#include "base/check.h"
#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

class SecondBackward {
 public:
  SecondBackward(ir::Graph& graph, const SecondBackwardOptions& options)
      : graph_(graph), order_(graph.order()), again_(graph.num_values()) {
    const auto last = std::ranges::find(order_, options.last_forward_op);
    PLIMSOLL_CHECK(last != order_.end(), "second_backward: the op that gives the loss is gone");
    begin_ = static_cast<size_t>(last - order_.begin());
  }

  SecondBackwardReport run() {
    std::vector<OpId> order(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(begin_));
    std::vector<OpId> clones, updates;
    for (size_t i = begin_; i < order_.size(); ++i) {
      const bool is_update = graph_.op(order_[i]).block == ir::kUpdateBlock;
      (is_update ? updates : order).push_back(order_[i]);
      if (!is_update && runs_again(graph_.op(order_[i]))) clones.push_back(clone(order_[i]));
    }
    for (const OpId id : updates)
      if (!graph_.op(id).def->reads_gradients)
        for (ValueId& in : graph_.op(id).inputs) in = stand_in(in);
    order.insert(order.end(), clones.begin(), clones.end());
    order.insert(order.end(), updates.begin(), updates.end());
    graph_.set_order(std::move(order));
    return {clones.size()};
  }

 private:
  /// A state is read and assigned once.
  static bool runs_again(const Op& op) {
    return op.def->state == ir::StateAccess::kNone && !op.def->has_effect;
  }

  [[nodiscard]] ValueId stand_in(ValueId v) const {
    return v.valid() && at(v) < again_.size() && again_[at(v)].valid() ? again_[at(v)] : v;
  }

  OpId clone(OpId id) {
    Op op = graph_.op(id);
    const std::vector<ir::Alias> consumed = ir::op_consumes(op);
    const std::vector<ValueId> outputs = std::exchange(op.outputs, {});
    for (ValueId& in : op.inputs) in = stand_in(in);
    // What it adds to - the loss so far - has been added to: the clone's own sum begins anew, and is not
    // asked for.
    for (const ir::Alias& a : consumed) {
      ValueId& in = op.inputs[static_cast<size_t>(a.input)];
      if (at(in) < again_.size()) in = {};
    }
    op.recomputed = true;
    std::vector<ir::TensorType> types;
    for (const ValueId v : outputs) types.push_back(graph_.type(v));
    const OpId made = graph_.append(std::move(op), types);
    for (size_t i = 0; i < outputs.size(); ++i) again_[at(outputs[i])] = graph_.op(made).outputs[i];
    return made;
  }

  ir::Graph& graph_;
  const std::vector<OpId> order_;
  std::vector<ValueId> again_;  // by value: its clone
  size_t begin_ = 0;            // place of the op that gives the loss
};

}  // namespace

Result<SecondBackwardReport> second_backward(ir::Graph& graph, const SecondBackwardOptions& options) {
  return SecondBackward(graph, options).run();
}

}  // namespace plimsoll::passes
