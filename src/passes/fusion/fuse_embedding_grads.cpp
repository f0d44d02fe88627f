// Saves a table-sized temporary, which would be written and read.
#include "passes/fusion/fuse_embedding_grads.h"

#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;
using ir::ValueId;

bool fuse_table(Rewriter& rw, OpId id) {
  if (rw.op(id).def->name != "add") return false;
  const ir::Op add = rw.op(id);
  for (const size_t side : {size_t{1}, size_t{0}}) {
    const ValueId total = add.inputs[1 - side];
    const OpId grad_id = rw.producer_id(add.inputs[side]);
    if (rw.op(grad_id).def->name != "embedding_grad") continue;
    const ir::Op grad = rw.op(grad_id);
    const ir::OpDef& maker = *rw.producer(total).def;
    const bool accumulates = grad.inputs.size() > 2 && grad.inputs[2].valid();
    if (accumulates || !rw.only_use(grad.outputs[0], id)) continue;
    if (!rw.only_use(total, id) || maker.state == ir::StateAccess::kRead || maker.is_view) continue;
    if (rw.type(total).dtype != rw.type(add.outputs[0]).dtype) continue;
    if (!rw.may_sink(grad_id, rw.position(id))) continue;
    ir::Attrs attrs;
    if (const ir::Attr* padding = grad.attrs.find("padding")) attrs.set("padding", *padding);
    const auto fused = rw.before(id, "embedding_grad_add", {total, grad.inputs[0], grad.inputs[1]}, attrs);
    rw.remove(id);
    rw.remove(grad_id);
    rw.replace(add.outputs[0], fused[0]);
    return true;
  }
  return false;
}

}  // namespace

Result<FuseEmbeddingGradsReport> fuse_embedding_grads(ir::Graph& graph,
                                                      const FuseEmbeddingGradsOptions& options) {
  Rewriter rw(graph, options.keep);
  FuseEmbeddingGradsReport report;
  for (const OpId id : rw.order()) report.fused += fuse_table(rw, id) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
