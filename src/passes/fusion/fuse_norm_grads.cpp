// The addition rises to the norm's gradient where its other operand is there by then; else the gradient
// sinks.
#include "passes/fusion/fuse_norm_grads.h"

#include <algorithm>

#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;
using ir::ValueId;

/// Where the fused op may stand: at one of the two, or nowhere.
OpId anchor(const Rewriter& rw, OpId grad, OpId add, ValueId other) {
  if (rw.position(rw.producer_id(other)) < rw.position(grad)) return grad;
  if (!rw.may_sink(grad, rw.position(add))) return {};
  const auto& outputs = rw.op(grad).outputs;
  const bool late = std::all_of(outputs.begin() + 1, outputs.end(),
                                [&](ValueId v) { return rw.used_only_after(v, rw.position(add), {}); });
  return late ? add : OpId{};
}

bool fuse_backward(Rewriter& rw, OpId id) {
  if (rw.op(id).def->name != "add") return false;
  const ir::Op add = rw.op(id);
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const ValueId dx = add.inputs[side];
    const ValueId other = add.inputs[1 - side];
    const OpId grad_id = rw.producer_id(dx);
    const ir::AddedForm& form = rw.op(grad_id).def->with_add;
    if (form.op.empty()) continue;
    const ir::Op grad = rw.op(grad_id);
    if (dx != grad.outputs[0] || dx == other || !rw.only_use(dx, id)) continue;
    if (rw.type(dx).dtype != rw.type(add.outputs[0]).dtype) continue;
    const OpId place = anchor(rw, grad_id, id, other);
    if (!place.valid()) continue;
    std::vector<ValueId> operands = grad.inputs;
    operands.insert(operands.begin() + form.operand, other);
    const auto fused = rw.before(place, form.op, operands, grad.attrs);
    rw.remove(id);
    rw.remove(grad_id);
    rw.replace(add.outputs[0], fused[0]);
    for (size_t i = 1; i < grad.outputs.size(); ++i) rw.replace(grad.outputs[i], fused[i]);
    return true;
  }
  return false;
}

/// Batch norm's way round: its gradient takes in the sum of the two cotangents of what it gave.
bool fuse_cotangents(Rewriter& rw, OpId id) {
  constexpr size_t kSecond = 8;
  if (rw.op(id).def->name != "batch_norm_add_grad") return false;
  const ir::Op grad = rw.op(id);
  const ValueId dy = grad.inputs[0];
  const OpId add_id = rw.producer_id(dy);
  const ir::Op add = rw.op(add_id);
  if (add.def->name != "add" || grad.inputs.size() > kSecond || !rw.only_use(dy, id)) return false;
  if (!rw.may_sink(add_id, rw.position(id))) return false;
  std::vector<ValueId> operands = grad.inputs;
  operands.resize(kSecond + 1);
  operands[0] = add.inputs[0];
  operands[kSecond] = add.inputs[1];
  const auto fused = rw.before(id, grad.def->name, operands, grad.attrs);
  rw.remove(id);
  rw.remove(add_id);
  for (size_t i = 0; i < grad.outputs.size(); ++i) rw.replace(grad.outputs[i], fused[i]);
  return true;
}

}  // namespace

Result<FuseNormGradsReport> fuse_norm_grads(ir::Graph& graph, const FuseNormGradsOptions& options) {
  Rewriter rw(graph, options.keep);
  FuseNormGradsReport report;
  for (const OpId id : rw.order())
    report.fused += !rw.removed(id) && (fuse_backward(rw, id) || fuse_cotangents(rw, id)) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
