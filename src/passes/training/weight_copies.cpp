#include "passes/training/weight_copies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/op_def.h"

namespace plimsoll::passes {

bool reads_parameter(const ir::Graph& graph, const ir::Op& op) {
  if (op.def->state != ir::StateAccess::kRead) return false;
  const ir::StateDecl* decl = graph.find_state(op.attrs.str("name"));
  return decl != nullptr && decl->state_class == ir::StateClass::kParameter;
}

void put_last_first(ir::Graph& graph, size_t known) {
  std::vector<ir::OpId> order = graph.order();
  std::rotate(order.begin(), order.begin() + static_cast<int64_t>(known), order.end());
  graph.set_order(std::move(order));
}

}  // namespace plimsoll::passes
