// One walk along the order.
#include "passes/offload/offload_uses.h"

#include <string_view>

#include "base/at.h"
#include "ir/op_def.h"
#include "passes/offload/offload.h"

namespace plimsoll::passes {
namespace {

class UseFinder {
 public:
  UseFinder(const ir::Graph& graph, OffloadUses& found) : graph_(graph), found_(found) {}

  void look_at(const ir::Op& op, int32_t p) {
    for (const ir::ValueId v : op.outputs) {
      found_.roots[at(v)] = op.def->is_view ? root_of(op.inputs[0]) : v;
      found_.made[at(v)] = p;
      if (op.def->is_view) found_.parts[at(v)] = part_of(op, v);
    }
    if (op.def->state != ir::StateAccess::kNone) note_state(op, p);
    if (op.def->reads_gradients)
      for (const ir::ValueId v : op.inputs)
        if (v.valid()) found_.is_gradient[at(root_of(v))] = true;
    if (!op.def->is_view) note_uses(op, p);
  }

 private:
  [[nodiscard]] ir::ValueId root_of(ir::ValueId v) const { return found_.roots[at(v)]; }

  void note_state(const ir::Op& op, int32_t p) {
    const auto state = static_cast<size_t>(graph_.find_state(op.attrs.str("name")) - graph_.states().data());
    found_.state[static_cast<size_t>(p)] = static_cast<int32_t>(state);
    const int32_t before = found_.assigned[state];
    if (op.def->state == ir::StateAccess::kRead && before >= 0) {
      found_.is_read_again[static_cast<size_t>(p)] = true;
      int32_t& next = found_.read_again[static_cast<size_t>(before)];
      if (next < 0) next = p;
    }
    if (op.def->state != ir::StateAccess::kAssign) return;
    found_.assigned[state] = p;
    found_.in_state[at(root_of(op.inputs[0]))] = true;
  }
  void note_uses(const ir::Op& op, int32_t p) {
    for (const ir::ValueId v : op.inputs) {
      if (!v.valid()) continue;
      std::vector<ItemUse>& uses = found_.uses[at(root_of(v))];
      const ir::ValueId part = found_.parts[at(v)];
      if (uses.empty() || uses.back().at != p)
        uses.push_back({p, part});
      else if (uses.back().part != part)
        uses.back().part = {};
    }
  }
  [[nodiscard]] ir::ValueId part_of(const ir::Op& view, ir::ValueId shown) const {
    const ir::ValueId of = view.inputs[0];
    if (found_.parts[at(of)].valid()) return found_.parts[at(of)];
    const bool cuts = view.outputs.size() > 1 && graph_.type(of).shape.rank() == 1;
    return cuts && view.block == ir::kUpdateBlock ? shown : ir::ValueId{};
  }

  const ir::Graph& graph_;
  OffloadUses& found_;
};

}  // namespace

OffloadUses::OffloadUses(const ir::Graph& graph, ir::OpId last_forward_op)
    : made(graph.num_values(), -1),
      roots(graph.num_values()),
      uses(graph.num_values()),
      in_state(graph.num_values(), false),
      is_gradient(graph.num_values(), false),
      parts(graph.num_values()),
      state(graph.order().size(), -1),
      assigned(graph.states().size(), -1),
      read_again(graph.order().size(), -1),
      is_read_again(graph.order().size(), false) {
  for (const ir::StateDecl& decl : graph.states()) state_blocks.push_back(block_of_state(decl.name));
  UseFinder finder(graph, *this);
  clock.reserve(graph.order().size());
  for (size_t p = 0; p < graph.order().size(); ++p) {
    const ir::Op& op = graph.op(graph.order()[p]);
    if (graph.order()[p] == last_forward_op) boundary = static_cast<int32_t>(p);
    const bool counts = !op.def->is_view || op.block != ir::kUpdateBlock;
    clock.push_back((p == 0 ? 0 : clock.back()) + (counts ? 1 : 0));
    finder.look_at(op, static_cast<int32_t>(p));
  }
}

bool OffloadUses::are_close(const ir::Graph& graph, int32_t before, int32_t use) const {
  const auto block = [&](int32_t place) { return graph.op(graph.order()[static_cast<size_t>(place)]).block; };
  const int32_t ops = distance(before, use);
  return ops <= kClose || (ops <= kCloseInBlock && block(use) == block(before));
}

}  // namespace plimsoll::passes
