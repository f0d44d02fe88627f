#include "planner/cost/step_cost.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "base/at.h"
#include "ir/network_queue.h"
#include "ir/op_def.h"
#include "planner/cost/queue_times.h"

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

std::vector<OpCost> op_costs(const ir::Graph& graph, const CostModel& model, bool with_host) {
  NearlyFree is_nearly_free(graph);
  const auto is_clone = [&](ir::OpId id) { return graph.op(id).recomputed; };
  std::vector<OpCost> costs;
  costs.reserve(graph.order().size());
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    OpCost& cost = costs.emplace_back();
    if (op.def->is_copy || op.def->ends_copy) continue;
    cost.work = ir::op_cost(graph, op);
    cost.network_bytes = network_bytes(graph, op);
    cost.is_update = op.block == ir::kUpdateBlock;
    cost.recomputed = op.recomputed;
    cost.nearly_free = op.recomputed && is_nearly_free(id, is_clone);
    if (cost.nearly_free) continue;
    const bool on_host = op.queue == ir::Queue::kHost;
    if (on_host || (with_host && cost.is_update)) cost.host_seconds = model.host_seconds(graph, op);
    if (!on_host) model.add(graph, op, cost.seconds);
  }
  return costs;
}

std::vector<double> kernel_seconds(const std::vector<OpCost>& ops) {
  std::vector<double> seconds;
  for (const OpCost& op : ops) seconds.push_back(op.seconds.total());
  return seconds;
}

double add_cost(const OpCost& op, bool on_host, StepCost& cost) {
  if (op.nearly_free) {
    cost.recompute_flops += op.work.flops;
    return 0;
  }
  (op.recomputed ? cost.recompute_flops : op.is_update ? cost.update_flops : cost.flops) += op.work.flops;
  if (on_host) return op.host_seconds;  // beside the device: what it waits for is among the copies
  (op.is_update ? cost.update_bytes : cost.bytes) += op.work.bytes;
  (op.is_update ? cost.update_network_bytes : cost.network_bytes) += op.network_bytes;
  (op.is_update ? cost.update_seconds : cost.seconds).add(op.seconds, 1);
  return op.seconds.total();
}

double& waiting_part(passes::ProgramRole role, StepCost& cost) {
  StepSeconds& seconds = role == passes::ProgramRole::kUpdate ? cost.update_seconds : cost.seconds;
  return seconds.parts[static_cast<size_t>(Part::kCopies)];
}

namespace {

/// Takes from the network's part what goes on behind kernels. `kernels` are those of add_cost; returns the
/// seconds of other waiting.
double hide_network(const ir::Graph& graph, std::vector<double> kernels, const CostModel& model,
                    StepCost& cost) {
  const passes::QueueProgram program = queue_program(graph);
  const auto waiting = [&] {
    return waiting_seconds(program, kernels, model.profile(), model.network_is_apart());
  };
  const double all = waiting();
  std::array<double, 2> network = {};  // of the update, and of the rest
  for (const passes::QueueWork& work : program.queues[passes::kQueueNetwork]) {
    const bool updates = graph.op(graph.order()[at(work.op_place)]).block == ir::kUpdateBlock;
    network[updates ? 0 : 1] += std::exchange(kernels[at(work.op_place)], 0.0);
  }
  const bool others = !program.queues[passes::kQueueIn].empty() ||
                      !program.queues[passes::kQueueOut].empty() ||
                      !program.queues[passes::kQueueHost].empty();
  const double other = others ? waiting() : 0;
  const double serial = network[0] + network[1];
  double hidden = serial - (all - other);
  if (hidden < 1e-9 * serial) hidden = 0;  // what rounding left
  for (const bool updates : {true, false}) {
    StepSeconds& seconds = updates ? cost.update_seconds : cost.seconds;
    const double part = std::min(hidden, network[updates ? 0 : 1]);
    double& exposed = seconds.parts[at(Part::kNetwork)];
    exposed -= part;
    if (exposed < 1e-9 * part) exposed = 0;  // what rounding left
    seconds.hidden += part;
    hidden -= part;
  }
  return other;
}

}  // namespace

void add_cost(const ir::Graph& graph, passes::ProgramRole role, const CostModel& model, StepCost& cost) {
  const std::vector<OpCost> ops = op_costs(graph, model, false);
  std::vector<double> kernels;  // by place in the order, the host's too
  bool copies = false, talks = false;
  for (size_t place = 0; place < ops.size(); ++place) {
    const ir::Op& op = graph.op(graph.order()[place]);
    copies = copies || op.def->is_copy;
    talks = talks || op.queue == ir::kNetworkQueue;
    kernels.push_back(add_cost(ops[place], op.queue == ir::Queue::kHost, cost));
  }
  if (talks)
    waiting_part(role, cost) += hide_network(graph, std::move(kernels), model, cost);
  else if (copies)
    waiting_part(role, cost) += waiting_seconds(queue_program(graph), kernels, model.profile());
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
