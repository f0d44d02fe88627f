// The sum rises to the product, and in front of both the read of its accumulator.
#include "passes/fusion/fuse_bias_grads.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/at.h"
#include "ir/op_def.h"
#include "ops/linear.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;
using ir::ValueId;

bool is_assign_of(const ir::Op& op, std::string_view state) {
  return op.def->state == ir::StateAccess::kAssign && op.attrs.str("name") == state;
}

/// Puts reads of accumulators that sums behind a product go on from in front of the product, where nothing
/// else asks for them and nothing between assigns to their state.
void raise_reads(ir::Graph& graph) {
  const std::vector<OpId> order = graph.order();
  const Lists<OpId> uses = graph.uses();
  std::vector<size_t> place(graph.num_ops());
  for (size_t i = 0; i < order.size(); ++i) place[at(order[i])] = i;
  std::map<OpId, std::vector<OpId>> in_front;
  std::set<OpId> moved;
  for (const OpId id : order) {
    const ir::Op& product = graph.op(id);
    if (product.def->name != "linear_dw") continue;
    for (const OpId user : uses[at(product.inputs[1])]) {
      const ir::Op& sum = graph.op(user);
      if (sum.def->name != "sum_rows" || sum.inputs.size() < 2 || !sum.inputs[1].valid()) continue;
      const OpId reader = graph.value(sum.inputs[1]).producer;
      const ir::Op& read = graph.op(reader);
      if (read.def->state != ir::StateAccess::kRead || uses[at(sum.inputs[1])].size() != 1) continue;
      if (place[at(reader)] < place[at(id)] || moved.contains(reader)) continue;
      const std::string& state = read.attrs.str("name");
      if (std::any_of(order.begin() + static_cast<std::ptrdiff_t>(place[at(id)]),
                      order.begin() + static_cast<std::ptrdiff_t>(place[at(reader)]),
                      [&](OpId between) { return is_assign_of(graph.op(between), state); }))
        continue;
      in_front[id].push_back(reader);
      moved.insert(reader);
    }
  }
  if (moved.empty()) return;
  std::vector<OpId> changed;
  changed.reserve(order.size());
  for (const OpId id : order) {
    if (const auto reads = in_front.find(id); reads != in_front.end())
      changed.insert(changed.end(), reads->second.begin(), reads->second.end());
    if (!moved.contains(id)) changed.push_back(id);
  }
  graph.set_order(std::move(changed));
}

/// The first sum of the rows of dy behind its product; invalid: there is none.
OpId sum_behind(const Rewriter& rw, OpId product, ValueId dy) {
  for (const OpId user : rw.uses(dy))
    if (rw.op(user).def->name == "sum_rows" && rw.position(user) > rw.position(product)) return user;
  return {};
}

bool fuse_bias_grad(Rewriter& rw, OpId id) {
  if (rw.removed(id) || rw.op(id).def->name != "linear_dw") return false;
  const ir::Op product = rw.op(id);
  const ValueId dy = product.inputs[1];
  const OpId sum_id = sum_behind(rw, id, dy);
  if (!sum_id.valid()) return false;
  const ir::Op sum = rw.op(sum_id);
  std::vector<ValueId> operands = product.inputs;
  if (sum.inputs.size() > 1 && sum.inputs[1].valid()) {
    const ValueId acc = sum.inputs[1];
    if (rw.position(rw.producer_id(acc)) > rw.position(id)) return false;
    operands.resize(4);
    operands[3] = acc;
  }
  ir::Attrs attrs = product.attrs;
  if (const ir::Attr* out = sum.attrs.find("out")) attrs.set(ops::kBiasOut, *out);
  const auto fused = rw.before(id, "linear_dw_db", operands, attrs);
  rw.remove(id);
  rw.remove(sum_id);
  rw.replace(product.outputs[0], fused[0]);
  rw.replace(sum.outputs[0], fused[1]);
  return true;
}

}  // namespace

Result<FuseBiasGradsReport> fuse_bias_grads(ir::Graph& graph, const FuseBiasGradsOptions& options) {
  raise_reads(graph);
  Rewriter rw(graph, options.keep);
  FuseBiasGradsReport report;
  for (const OpId id : rw.order()) report.fused += fuse_bias_grad(rw, id) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
