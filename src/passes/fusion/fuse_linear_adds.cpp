// Saves a tensor of the result's size, which would be written and read.
#include "passes/fusion/fuse_linear_adds.h"

#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;
using ir::ValueId;

constexpr int64_t kMostTerms = 256;

/// Terms of a product that can be added to something of that dtype in place; else more than kMostTerms.
int64_t terms(const Rewriter& rw, ValueId v, ir::DType dtype) {
  const ir::Op& op = rw.producer(v);
  const bool has_bias = op.inputs.size() > 2 && op.inputs[2].valid();
  if (op.def->name != "linear" || has_bias || rw.type(v).dtype != dtype ||
      ir::is_block(rw.type(op.inputs[1]).dtype))
    return kMostTerms + 1;
  return rw.type(op.inputs[0]).shape.dim(-1);
}

bool fuse_sum(Rewriter& rw, OpId id) {
  if (rw.op(id).def->name != "add") return false;
  const ir::Op add = rw.op(id);
  const ir::DType dtype = rw.type(add.outputs[0]).dtype;
  const int64_t of[] = {terms(rw, add.inputs[0], dtype), terms(rw, add.inputs[1], dtype)};
  const size_t fewer = of[0] < of[1] ? 0 : 1;
  for (const size_t side : {fewer, 1 - fewer}) {
    const ValueId total = add.inputs[1 - side];
    const OpId product_id = rw.producer_id(add.inputs[side]);
    if (of[side] > kMostTerms || !rw.only_use(add.inputs[side], id)) continue;
    const ir::OpDef& maker = *rw.producer(total).def;
    if (!rw.only_use(total, id) || maker.state == ir::StateAccess::kRead || maker.is_view) continue;
    if (rw.type(total).dtype != dtype || !rw.may_sink(product_id, rw.position(id))) continue;
    const ir::Op product = rw.op(product_id);
    ir::Attrs attrs{{"column", int64_t{0}}, {"transposed", product.attrs.flag("transposed")}};
    if (const ir::Attr* precision = product.attrs.find("precision")) attrs.set("precision", *precision);
    const auto fused = rw.before(id, "linear_add", {product.inputs[0], product.inputs[1], total}, attrs);
    rw.remove(id);
    rw.remove(product_id);
    rw.replace(add.outputs[0], fused[0]);
    return true;
  }
  return false;
}

}  // namespace

Result<FuseLinearAddsReport> fuse_linear_adds(ir::Graph& graph, const FuseLinearAddsOptions& options) {
  Rewriter rw(graph, options.keep);
  FuseLinearAddsReport report;
  for (const OpId id : rw.order()) report.fused += fuse_sum(rw, id) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
