#include "ir/op_query.h"

#include <algorithm>

#include "base/at.h"
#include "ir/op_def.h"

namespace plimsoll::ir {

bool takes_attr(const Op& op, std::string_view name) {
  return std::any_of(op.def->attrs.begin(), op.def->attrs.end(),
                     [&](const AttrSpec& a) { return a.name == name; });
}

AssignedElements assigned_elements(const Graph& graph, const Op& assign) {
  const bool is_window = assign.attrs.find("begin") != nullptr;
  const int64_t begin = is_window ? assign.attrs.i64("begin") : 0;
  return {begin, begin + graph.type(assign.inputs[0]).num_elements(), is_window};
}

const Op& maker(const Graph& graph, ValueId v) {
  const Op* op = &graph.op(graph.value(v).producer);
  while (op->def->is_view) op = &graph.op(graph.value(op->inputs[0]).producer);
  return *op;
}

std::vector<const Op*> states_read(const Graph& graph, ValueId v) {
  const Op& op = maker(graph, v);
  if (op.def->state == StateAccess::kRead) return {&op};
  // Of which ranks have pieces.
  if (op.def->elements == Elements::kSame && op.def->traffic != nullptr)
    return states_read(graph, op.inputs[0]);
  std::vector<const Op*> all;
  if (op.def->elements == Elements::kJoined)
    for (const ValueId part : op.inputs)
      for (const Op* state : states_read(graph, part)) all.push_back(state);
  return all;
}

std::vector<bool> depends_on(const Graph& graph, std::span<const ValueId> from) {
  std::vector<bool> depends(graph.num_values(), false);
  for (const ValueId v : from) depends[at(v)] = true;
  for (const OpId id : graph.order()) {
    const Op& op = graph.op(id);
    const bool does = std::any_of(op.inputs.begin(), op.inputs.end(),
                                  [&](ValueId v) { return v.valid() && depends[at(v)]; });
    for (const ValueId v : op.outputs)
      if (does && is_floating(graph.type(v).dtype)) depends[at(v)] = true;
  }
  return depends;
}

}  // namespace plimsoll::ir
