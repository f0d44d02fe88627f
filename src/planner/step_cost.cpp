#include "planner/step_cost.h"

#include <algorithm>
#include <set>

#include "ir/op_def.h"

namespace plimsoll::planner {

namespace {

/// A clone of a cheap op from values that are kept, or from such clones.
bool is_nearly_free(const ir::Graph& graph, const ir::Op& op, const std::set<ir::OpId>& nearly_free) {
  if (!op.recomputed || op.def->recompute != ir::RecomputeClass::kNearlyFree) return false;
  return std::ranges::none_of(op.inputs, [&](ir::ValueId v) {
    if (!v.valid()) return false;
    const ir::OpId producer = graph.value(v).producer;
    return graph.op(producer).recomputed && !nearly_free.contains(producer);
  });
}

}  // namespace

void add_cost(const ir::Graph& graph, const CostModel& model, StepCost& cost) {
  std::set<ir::OpId> nearly_free;
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    const ir::Cost of = ir::op_cost(graph, op);
    const bool is_update = op.block == ir::kUpdateBlock;
    if (is_nearly_free(graph, op, nearly_free)) {
      nearly_free.insert(id);
      cost.recompute_flops += of.flops;
      continue;
    }
    (op.recomputed ? cost.recompute_flops : is_update ? cost.update_flops : cost.flops) += of.flops;
    (is_update ? cost.update_bytes : cost.bytes) += of.bytes;
    model.add(graph, op, is_update ? cost.update_seconds : cost.seconds);
  }
}

}  // namespace plimsoll::planner
