#include "planner/step_cost.h"

#include "ir/op_def.h"

namespace plimsoll::planner {

void add_cost(const ir::Graph& graph, StepCost& cost) {
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    const ir::Cost of = ir::op_cost(graph, op);
    const bool is_update = op.block == ir::kUpdateBlock;
    (op.recomputed ? cost.recompute_flops : is_update ? cost.update_flops : cost.flops) += of.flops;
    (is_update ? cost.update_bytes : cost.bytes) += of.bytes;
  }
}

}  // namespace plimsoll::planner
