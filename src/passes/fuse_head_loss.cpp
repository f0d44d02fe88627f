// Stands at the loss, to which the linear sinks.
#include "passes/fuse_head_loss.h"

#include <fmt/format.h>

#include "ir/op_def.h"
#include "ops/ops.h"

namespace plimsoll::passes {
namespace {

bool fuse(Rewriter& rw, ir::OpId id, const FuseHeadLossOptions& options) {
  const ir::Op loss = rw.op(id);
  if (loss.def->name != "cross_entropy" || !rw.unused(loss.outputs[1]) || !rw.only_use(loss.inputs[0], id))
    return false;
  const ir::OpId head_id = rw.producer_id(loss.inputs[0]);
  const ir::Op head = rw.op(head_id);
  const bool biased = head.inputs.size() > 2 && head.inputs[2].valid();
  if (head.def->name != "linear" || biased || !rw.may_sink(head_id, rw.position(id))) return false;
  std::vector<ir::ValueId> operands = {head.inputs[0], head.inputs[1], loss.inputs[1], loss.inputs[2]};
  if (loss.inputs.size() > 3) operands.push_back(loss.inputs[3]);
  const auto fused = rw.before(id, "head_loss", operands,
                               {{"grad", options.grad},
                                {"transposed", head.attrs.flag("transposed")},
                                {"chunk_tokens", options.chunk_tokens}});
  rw.remove(id);
  rw.remove(head_id);
  rw.replace(loss.outputs[0], fused[0]);
  return true;
}

}  // namespace

Result<FuseHeadLossReport> fuse_head_loss(ir::Graph& graph, const FuseHeadLossOptions& options) {
  if (options.chunk_tokens <= 0 || options.chunk_tokens % ops::kGranule != 0)
    return Error{.what = fmt::format("chunk_tokens {} is no positive multiple of {}", options.chunk_tokens,
                                     ops::kGranule),
                 .where = "head and loss"};
  Rewriter rw(graph, options.keep);
  FuseHeadLossReport report;
  for (const ir::OpId id : rw.order()) report.fused += fuse(rw, id, options) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
