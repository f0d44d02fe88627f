// One walk along the order.
#include "passes/memory/storage_groups.h"

#include <algorithm>

#include "base/at.h"
#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

void add_results(StorageGroups& s, const ir::Op& op, size_t place) {
  const auto consumes = op.def->is_view ? std::vector<ir::Alias>{} : ir::op_consumes(op);
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const ir::ValueId out = op.outputs[i];
    const auto alias = std::find_if(consumes.begin(), consumes.end(),
                                    [&](const ir::Alias& a) { return a.output == static_cast<int32_t>(i); });
    if (op.def->is_view || alias != consumes.end()) {
      const ir::ValueId source = op.inputs[op.def->is_view ? 0 : static_cast<size_t>(alias->input)];
      s.group_of[at(out)] = s.index(source);
      s.whole[at(out)] = s.whole[at(source)] && (!op.def->is_view || op.outputs.size() == 1);
    } else {
      s.group_of[at(out)] = static_cast<int32_t>(s.groups.size());
      s.whole[at(out)] = true;
      s.groups.push_back({out, op.def->state == ir::StateAccess::kRead, false, place});
    }
    auto& group = s.groups[static_cast<size_t>(s.index(out))];
    group.last_use = std::max(group.last_use, place);
  }
}

}  // namespace

ir::ValueId view_root(const ir::Graph& graph, ir::ValueId v) {
  while (graph.op(graph.value(v).producer).def->is_view) v = graph.op(graph.value(v).producer).inputs[0];
  return v;
}

StorageGroups storage_groups(const ir::Graph& graph, std::span<const ir::OpId> order,
                             std::span<const ir::ValueId> keep) {
  StorageGroups s;
  s.group_of.assign(graph.num_values(), -1);
  s.whole.assign(graph.num_values(), false);
  s.groups.reserve(graph.num_values());
  for (size_t place = 0; place < order.size(); ++place) {
    const ir::Op& op = graph.op(order[place]);
    for (const ir::ValueId v : op.inputs) {
      if (!v.valid()) continue;
      auto& group = s.groups[static_cast<size_t>(s.index(v))];
      group.last_use = place;
      group.assigned = group.assigned || op.def->state == ir::StateAccess::kAssign;
    }
    add_results(s, op, place);
  }
  for (const ir::ValueId v : keep)
    if (v.valid() && s.index(v) >= 0) s.groups[static_cast<size_t>(s.index(v))].last_use = order.size();
  return s;
}

}  // namespace plimsoll::passes
