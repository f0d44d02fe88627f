// Patterns are found from their last op.
#include "passes/fusion/fuse_activations.h"

#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;
using ir::ValueId;

/// The [gate, up] split whose halves are `gate` and `up`, if they are; else an invalid id.
OpId split_in_halves(const Rewriter& rw, ValueId gate, ValueId up) {
  const OpId id = rw.producer_id(gate);
  const ir::Op& split = rw.op(id);
  const bool halves = split.def->name == "split" && split.outputs.size() == 2 && split.outputs[0] == gate &&
                      split.outputs[1] == up && rw.type(gate) == rw.type(up);
  return halves ? id : OpId{};
}

bool fuse_swiglu(Rewriter& rw, OpId id) {
  if (rw.op(id).def->name != "mul") return false;
  const ir::Op mul = rw.op(id);
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const OpId silu_id = rw.producer_id(mul.inputs[side]);
    const ir::Op silu = rw.op(silu_id);
    if (silu.def->name != "silu" || !rw.only_use(silu.outputs[0], id)) continue;
    const OpId split = split_in_halves(rw, silu.inputs[0], mul.inputs[1 - side]);
    if (!split.valid() || !rw.may_sink(split, rw.position(id))) continue;
    const auto fused = rw.before(id, "swiglu", {rw.op(split).inputs[0]});
    rw.remove(id);
    rw.remove(silu_id);
    rw.replace(mul.outputs[0], fused[0]);
    if (rw.unused(silu.inputs[0]) && rw.unused(mul.inputs[1 - side])) rw.remove(split);
    return true;
  }
  return false;
}

bool fuse_bias_gelu(Rewriter& rw, OpId id) {
  if (rw.op(id).def->name != "gelu") return false;
  const ir::Op gelu = rw.op(id);
  const OpId inner_id = rw.producer_id(gelu.inputs[0]);
  const ir::Op inner = rw.op(inner_id);
  if (rw.removed(inner_id) || !rw.only_use(gelu.inputs[0], id) || !rw.may_sink(inner_id, rw.position(id)))
    return false;
  ValueId x;
  ValueId bias;
  if (inner.def->name == "bias_add") {
    x = inner.inputs[0];
    bias = inner.inputs[1];
  } else if (inner.def->name == "linear" && inner.inputs.size() > 2 && inner.inputs[2].valid()) {
    x = rw.before(inner_id, "linear", {inner.inputs[0], inner.inputs[1]}, inner.attrs)[0];
    bias = inner.inputs[2];
  } else {
    return false;
  }
  const auto fused = rw.before(id, "bias_gelu", {x, bias}, gelu.attrs);
  rw.remove(id);
  rw.remove(inner_id);
  rw.replace(gelu.outputs[0], fused[0]);
  return true;
}

}  // namespace

Result<FuseActivationsReport> fuse_activations(ir::Graph& graph, const FuseActivationsOptions& options) {
  Rewriter rw(graph, options.keep);
  FuseActivationsReport report;
  for (const OpId id : rw.order()) report.fused += fuse_swiglu(rw, id) || fuse_bias_gelu(rw, id) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
