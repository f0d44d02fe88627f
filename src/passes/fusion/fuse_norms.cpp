// The fused op stands at the norm's place, so the addition sinks to it and the sum's other users must come
// later.
#include "passes/fusion/fuse_norms.h"

#include <array>

#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

/// Fuses the norm `id` with the addition that makes its operand; false where the pattern is not there.
bool fuse(ir::Graph& graph, Rewriter& rw, ir::OpId id) {
  const std::string_view with_add = rw.op(id).def->norm.with_add;
  if (with_add.empty()) return false;
  const ir::Op norm = rw.op(id);
  const ir::OpId add_id = rw.producer_id(norm.inputs[0]);
  if (rw.op(add_id).def->name != "add" || rw.removed(add_id)) return false;
  const ir::Op add = rw.op(add_id);
  const size_t place = rw.position(id);
  if (!rw.used_only_after(norm.inputs[0], place, std::array{id}) || !rw.may_sink(add_id, place)) return false;
  std::vector<ir::ValueId> operands = {add.inputs[0], add.inputs[1]};
  operands.insert(operands.end(), norm.inputs.begin() + 1, norm.inputs.end());
  const auto fused = rw.before(id, with_add, operands, norm.attrs);
  graph.op(rw.producer_id(fused[0])).recomputed = norm.recomputed;
  rw.remove(id);
  rw.remove(add_id);
  rw.replace(add.outputs[0], fused[0]);
  for (size_t i = 0; i < norm.outputs.size(); ++i) rw.replace(norm.outputs[i], fused[i + 1]);
  return true;
}

}  // namespace

Result<FuseNormsReport> fuse_norms(ir::Graph& graph, const FuseNormsOptions& options) {
  Rewriter rw(graph, options.keep);
  FuseNormsReport report;
  for (const ir::OpId id : rw.order()) report.fused += fuse(graph, rw, id) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
