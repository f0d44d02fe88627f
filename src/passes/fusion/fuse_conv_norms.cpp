// Statistics rise to their convolution, which alone they read; a convolution sinks to its norm.
#include "passes/fusion/fuse_conv_norms.h"

#include "ir/op_def.h"
#include "ops/conv_norm.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::OpId;

bool is_plain_conv(const Rewriter& rw, OpId id) {
  const Op& op = rw.op(id);
  const bool has_bias = op.inputs.size() > 2 && op.inputs[2].valid();
  return op.def->name == "conv2d" && !has_bias && !rw.removed(id);
}

bool fuse_statistics(Rewriter& rw, OpId id) {
  if (rw.op(id).def->name != "batch_statistics") return false;
  const Op statistics = rw.op(id);
  const OpId conv_id = rw.producer_id(statistics.inputs[0]);
  if (!is_plain_conv(rw, conv_id)) return false;
  const Op conv = rw.op(conv_id);
  const auto fused = rw.before(conv_id, ops::kConvStatistics, {conv.inputs[0], conv.inputs[1]}, conv.attrs);
  rw.remove(id);
  rw.remove(conv_id);
  rw.replace(conv.outputs[0], fused[0]);
  rw.replace(statistics.outputs[0], fused[1]);
  rw.replace(statistics.outputs[1], fused[2]);
  return true;
}

bool fuse_norm(ir::Graph& graph, Rewriter& rw, OpId id) {
  if (rw.op(id).def->name != "batch_norm") return false;
  const Op norm = rw.op(id);
  const OpId conv_id = rw.producer_id(norm.inputs[0]);
  if (!is_plain_conv(rw, conv_id) || !rw.only_use(norm.inputs[0], id)) return false;
  const Op conv = rw.op(conv_id);
  if (rw.type(conv.outputs[0]).dtype != rw.type(norm.outputs[0]).dtype) return false;
  if (!rw.may_sink(conv_id, rw.position(id))) return false;
  ir::Attrs attrs = conv.attrs;
  attrs.set("eps", norm.attrs.f64("eps"));
  if (norm.attrs.flag("relu")) attrs.set("relu", true);
  std::vector<ir::ValueId> operands{conv.inputs[0], conv.inputs[1]};
  operands.insert(operands.end(), norm.inputs.begin() + 1, norm.inputs.end());
  const auto fused = rw.before(id, ops::kConvBatchNorm, operands, attrs);
  graph.op(rw.producer_id(fused[0])).recomputed = conv.recomputed;
  rw.remove(id);
  rw.remove(conv_id);
  rw.replace(norm.outputs[0], fused[0]);
  return true;
}

}  // namespace

Result<FuseConvNormsReport> fuse_conv_norms(ir::Graph& graph, const FuseConvNormsOptions& options) {
  Rewriter rw(graph, options.keep);
  FuseConvNormsReport report;
  for (const OpId id : rw.order())
    report.fused += fuse_statistics(rw, id) || fuse_norm(graph, rw, id) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
