// One walk backwards over the order: an op is alive where it has an effect or a living op uses a result of
// it.
#include "passes/fusion/dead_code.h"

#include <algorithm>

#include "base/at.h"
#include "ir/op_def.h"

namespace plimsoll::passes {

Result<DeadCodeReport> dead_code(ir::Graph& graph, const DeadCodeOptions& options) {
  std::vector<bool> wanted(graph.num_values(), false);
  std::vector<bool> alive(graph.num_ops(), false);
  for (const ir::ValueId v : options.keep)
    if (v.valid()) wanted[at(v)] = true;
  for (auto it = graph.order().rbegin(); it != graph.order().rend(); ++it) {
    const ir::Op& op = graph.op(*it);
    if (!op.def->has_effect &&
        std::none_of(op.outputs.begin(), op.outputs.end(), [&](ir::ValueId v) { return wanted[at(v)]; }))
      continue;
    alive[static_cast<size_t>(it->index)] = true;
    for (const ir::ValueId v : op.inputs)
      if (v.valid()) wanted[at(v)] = true;
  }
  const size_t before = graph.order().size();
  graph.remove_ops([&](ir::OpId id) { return !alive[static_cast<size_t>(id.index)]; });
  return DeadCodeReport{before - graph.order().size()};
}

void empty_removed_ops(ir::Graph& graph) {
  std::vector<bool> stays(graph.num_ops(), false);
  for (const ir::OpId id : graph.order()) stays[static_cast<size_t>(id.index)] = true;
  for (size_t i = 0; i < stays.size(); ++i)
    if (!stays[i]) {
      ir::Op& op = graph.op(ir::OpId{static_cast<int32_t>(i)});
      op = ir::Op{.def = op.def};
    }
}

}  // namespace plimsoll::passes
