#include "passes/offload/offload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/op_def.h"
#include "passes/offload/offload_emit.h"
#include "passes/offload/offload_items.h"
#include "passes/offload/offload_knowledge.h"
#include "passes/offload/space_copies.h"

namespace plimsoll::passes {

using ir::MemorySpace;
using ir::StateClass;

void sum_squares_early(ir::Graph& graph) {
  const auto is_sum = [&](ir::OpId id) {
    const ir::Op& op = graph.op(id);
    return op.def->reads_gradients && op.inputs.size() == 1;
  };
  std::vector<std::vector<ir::OpId>> behind(graph.num_ops());
  for (const ir::OpId id : graph.order())
    if (is_sum(id)) {
      const ir::OpId maker = graph.value(graph.op(id).inputs[0]).producer;
      behind[static_cast<size_t>(maker.index)].push_back(id);
    }
  std::vector<ir::OpId> order;
  for (const ir::OpId id : graph.order()) {
    if (is_sum(id)) continue;
    order.push_back(id);
    const auto& sums = behind[static_cast<size_t>(id.index)];
    order.insert(order.end(), sums.begin(), sums.end());
  }
  graph.set_order(std::move(order));
}

MemorySpace offloaded_space(const OffloadOptions& options, const ir::StateDecl& decl) {
  return offloaded_space(options, decl, block_of_state(decl.name));
}

MemorySpace offloaded_space(const OffloadOptions& options, const ir::StateDecl& decl, int32_t block) {
  if (decl.type.bytes().count < options.least_bytes) return MemorySpace::kDevice;
  const auto of = [&](OffloadClass c) { return options.space(c, block); };
  switch (decl.state_class) {
    case StateClass::kParameter:
      return of(OffloadClass::kParameters);
    case StateClass::kMasterWeight:
      return of(OffloadClass::kMasters);
    case StateClass::kGradient:
      return of(OffloadClass::kGradients);
    case StateClass::kOptimizerState:
      return of(OffloadClass::kOptimizer);
    default:
      return MemorySpace::kDevice;
  }
}

Status offload(ir::Graph& graph, const OffloadOptions& options, const OffloadContext& context) {
  return offload(graph, options, context, {});
}

Status offload(ir::Graph& graph, const OffloadOptions& options, const OffloadContext& context,
               const OffloadKnowledge& known) {
  if (!options.any()) return Ok{};
  if (options.updates_on_host) sum_squares_early(graph);
  const OffloadOutliner outliner(graph, context.last_forward_op, known.scratch, context.keep);
  OffloadItems items = find_offload_items(graph, outliner.uses(), options);
  CopyTimes times{.copy_seconds = known.copy_seconds};
  if (known.kernel_seconds) times.kernel_seconds = known.kernel_seconds(graph);
  space_copies(outliner, options, times, items);
  OffloadedGraph result = emit_offloaded(graph, options, items);
  for (ir::ValueId& v : context.keep) v = result.replaced[static_cast<size_t>(v.index)];
  graph = std::move(result.graph);
  return Ok{};
}

BytesMoved bytes_moved(const ir::Graph& graph) {
  BytesMoved moved;
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (!op.def->is_copy) continue;
    (op.queue == ir::Queue::kCopyIn ? moved.in : moved.out) += graph.type(op.outputs[0]).bytes().count;
  }
  return moved;
}

}  // namespace plimsoll::passes
