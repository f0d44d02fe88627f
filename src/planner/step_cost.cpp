#include "planner/step_cost.h"

#include <algorithm>
#include <set>
#include <vector>

#include "ir/op_def.h"
#include "planner/queue_times.h"

namespace plimsoll::planner {

namespace {

/// Clones that are nearly free: of cheap ops from values that are kept, or from such clones.
class NearlyFree {
 public:
  explicit NearlyFree(const ir::Graph& graph) : graph_(graph) {}

  /// Clones are asked in the graph's order, each once; `is_clone` says of any op whether it is one.
  template <typename IsClone>
  bool operator()(ir::OpId id, const IsClone& is_clone) {
    const ir::Op& op = graph_.op(id);
    if (op.def->recompute != ir::RecomputeClass::kNearlyFree) return false;
    const bool is = std::ranges::none_of(op.inputs, [&](ir::ValueId v) {
      if (!v.valid()) return false;
      const ir::OpId producer = graph_.value(v).producer;
      return is_clone(producer) && !found_.contains(producer);
    });
    if (is) found_.insert(id);
    return is;
  }

 private:
  const ir::Graph& graph_;
  std::set<ir::OpId> found_;
};

}  // namespace

void add_cost(const ir::Graph& graph, const CostModel& model, StepCost& cost) {
  NearlyFree is_nearly_free(graph);
  const auto is_clone = [&](ir::OpId id) { return graph.op(id).recomputed; };
  std::vector<double> kernels;  // by place in the order, the host's too
  bool copies = false;
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    kernels.push_back(0);
    if (op.def->is_copy || op.def->name == "copy_done") {
      copies = true;
      continue;
    }
    const ir::Cost of = ir::op_cost(graph, op);
    const bool is_update = op.block == ir::kUpdateBlock;
    if (op.recomputed && is_nearly_free(id, is_clone)) {
      cost.recompute_flops += of.flops;
      continue;
    }
    (op.recomputed ? cost.recompute_flops : is_update ? cost.update_flops : cost.flops) += of.flops;
    if (op.queue == ir::Queue::kHost) {  // beside the device: what it waits for is among the copies
      kernels.back() = model.host_seconds(graph, op);
      continue;
    }
    (is_update ? cost.update_bytes : cost.bytes) += of.bytes;
    StepSeconds seconds;
    model.add(graph, op, seconds);
    kernels.back() = seconds.total();
    (is_update ? cost.update_seconds : cost.seconds).add(seconds, 1);
  }
  if (!copies) return;
  StepSeconds& seconds = graph.name == "update" ? cost.update_seconds : cost.seconds;
  seconds.parts[static_cast<size_t>(Part::kCopies)] += waiting_seconds(graph, kernels, model.profile());
}

double seconds_again(const ir::Graph& graph, std::span<const ir::OpId> ops, const CostModel& model) {
  NearlyFree is_nearly_free(graph);
  const std::set<ir::OpId> clones(ops.begin(), ops.end());
  const auto is_clone = [&](ir::OpId id) { return clones.contains(id); };
  StepSeconds seconds;
  for (const ir::OpId id : ops)
    if (!is_nearly_free(id, is_clone)) model.add(graph, graph.op(id), seconds);
  return seconds.total();
}

}  // namespace plimsoll::planner
