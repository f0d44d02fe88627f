// One walk along the order.
#include "passes/memory/storage_groups.h"

#include <algorithm>

#include "base/at.h"
#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

/// Whether a view shows all elements of its operand, in their order.
bool shows_all(const ir::Graph& graph, const ir::Op& view) {
  if (view.outputs.size() != 1) return false;
  const ir::OpTypes types = ir::op_types(graph, view);
  const ir::Shape& shape = types.outputs[0].shape;
  const auto place = view.def->view(types, ir::dense_strides(types.inputs[0].shape), 0);
  return place && place->offset == 0 && place->strides == ir::dense_strides(shape) &&
         shape.num_elements() == types.inputs[0].num_elements();
}

void add_results(const ir::Graph& graph, StorageGroups& s, const ir::Op& op, size_t place) {
  const auto consumes = op.def->is_view ? std::vector<ir::Alias>{} : ir::op_consumes(op);
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const ir::ValueId out = op.outputs[i];
    const auto alias = std::find_if(consumes.begin(), consumes.end(),
                                    [&](const ir::Alias& a) { return a.output == static_cast<int32_t>(i); });
    if (op.def->is_view || alias != consumes.end()) {
      const ir::ValueId source = op.inputs[op.def->is_view ? 0 : static_cast<size_t>(alias->input)];
      s.group_of[at(out)] = s.index(source);
      s.whole[at(out)] = s.whole[at(source)] && (!op.def->is_view || shows_all(graph, op));
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
    add_results(graph, s, op, place);
  }
  for (const ir::ValueId v : keep)
    if (v.valid() && s.index(v) >= 0) s.groups[static_cast<size_t>(s.index(v))].last_use = order.size();
  return s;
}

}  // namespace plimsoll::passes
