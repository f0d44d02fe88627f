// The sum rises to the product.
#include "passes/fusion/fuse_bias_grads.h"

#include <algorithm>

#include "ir/op_def.h"
#include "ops/linear.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;
using ir::ValueId;

/// The first sum of the rows of dy behind its product; invalid: there is none.
OpId sum_behind(const Rewriter& rw, OpId product, ValueId dy) {
  for (const OpId user : rw.uses(dy))
    if (rw.op(user).def->name == "sum_rows" && rw.position(user) > rw.position(product)) return user;
  return {};
}

bool is_assigned_between(const Rewriter& rw, std::string_view state, size_t from, size_t to) {
  return std::any_of(rw.order().begin() + static_cast<std::ptrdiff_t>(from),
                     rw.order().begin() + static_cast<std::ptrdiff_t>(to), [&](OpId id) {
                       const ir::Op& op = rw.op(id);
                       return op.def->state == ir::StateAccess::kAssign && op.attrs.str("name") == state;
                     });
}

/// The accumulator as it can be read in front of the product: as it is, or by a read of its own. Invalid
/// where neither can be.
ValueId accumulator_at(Rewriter& rw, OpId product, OpId sum, ValueId acc) {
  const OpId reader = rw.producer_id(acc);
  if (rw.position(reader) < rw.position(product)) return acc;
  const ir::Op read = rw.op(reader);
  if (read.def->state != ir::StateAccess::kRead || !rw.only_use(acc, sum)) return {};
  if (is_assigned_between(rw, read.attrs.str("name"), rw.position(product), rw.position(sum))) return {};
  const ValueId early = rw.before(product, read.def->name, {}, read.attrs)[0];
  rw.remove(reader);
  return early;
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
    const ValueId acc = accumulator_at(rw, id, sum_id, sum.inputs[1]);
    if (!acc.valid()) return false;
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
  Rewriter rw(graph, options.keep);
  FuseBiasGradsReport report;
  for (const OpId id : rw.order()) report.fused += fuse_bias_grad(rw, id) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
