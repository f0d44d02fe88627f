#include "ir/op_query.h"

#include <algorithm>

#include "ir/op_def.h"

namespace plimsoll::ir {

bool takes_attr(const Op& op, std::string_view name) {
  return std::any_of(op.def->attrs.begin(), op.def->attrs.end(),
                     [&](const AttrSpec& a) { return a.name == name; });
}

const Op& maker(const Graph& graph, ValueId v) {
  const Op* op = &graph.op(graph.value(v).producer);
  while (op->def->is_view) op = &graph.op(graph.value(op->inputs[0]).producer);
  return *op;
}

}  // namespace plimsoll::ir
