// Stands at the loss, to which the linear sinks.
#include "passes/fusion/fuse_head_loss.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/op_def.h"
#include "ir/op_query.h"
#include "ops/granules.h"

namespace plimsoll::passes {
namespace {

bool is_frozen(const FuseHeadLossOptions& options, const std::string& state) {
  return std::ranges::find(options.frozen, state) != options.frozen.end();
}

/// By value: whether it is a parameter that learns or computed from one; all, where nothing is frozen.
std::vector<bool> learning(const ir::Graph& graph, const FuseHeadLossOptions& options) {
  if (options.frozen.empty()) return std::vector<bool>(graph.num_values(), true);
  std::vector<ir::ValueId> parameters;
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (op.def->state != ir::StateAccess::kRead || is_frozen(options, op.attrs.str("name"))) continue;
    const ir::StateDecl* state = graph.find_state(op.attrs.str("name"));
    if (state->state_class == ir::StateClass::kParameter) parameters.push_back(op.outputs[0]);
  }
  return ir::depends_on(graph, parameters);
}

bool fuse(Rewriter& rw, ir::OpId id, const FuseHeadLossOptions& options, const std::vector<bool>& learns) {
  if (rw.op(id).def->name != "cross_entropy") return false;
  const ir::Op loss = rw.op(id);
  const bool has_scale = loss.inputs.size() > 2 && loss.inputs[2].valid();
  if (!has_scale || !rw.unused(loss.outputs[1]) || !rw.only_use(loss.inputs[0], id)) return false;
  const ir::OpId head_id = rw.producer_id(loss.inputs[0]);
  const ir::Op head = rw.op(head_id);
  const bool biased = head.inputs.size() > 2 && head.inputs[2].valid();
  if (head.def->name != "linear" || biased || !rw.may_sink(head_id, rw.position(id))) return false;
  std::vector<ir::ValueId> operands = {head.inputs[0], head.inputs[1], loss.inputs[1], loss.inputs[2]};
  if (loss.inputs.size() > 3) operands.push_back(loss.inputs[3]);
  const auto wants = [&](size_t i) {
    return options.grad && learns[static_cast<size_t>(head.inputs[i].index)];
  };
  ir::Attrs attrs{{"transposed", head.attrs.flag("transposed")},
                  {"chunk_tokens", round_up(options.chunk_tokens, ops::loss_chunk_unit(wants(1)))}};
  const bool only_dw = wants(1) && !wants(0);
  if (!only_dw) attrs.set("grad", wants(0));
  if (wants(0) && !wants(1)) attrs.set("only_dx", true);
  const auto fused = rw.before(id, only_dw ? "head_loss_dw" : "head_loss", operands, std::move(attrs));
  rw.remove(id);
  rw.remove(head_id);
  rw.replace(loss.outputs[0], fused[0]);
  return true;
}

}  // namespace

Result<FuseHeadLossReport> fuse_head_loss(ir::Graph& graph, const FuseHeadLossOptions& options) {
  if (options.chunk_tokens <= 0 || options.chunk_tokens % ops::kLossRows != 0)
    return Error{.what = fmt::format("chunk_tokens {} is no positive multiple of {}", options.chunk_tokens,
                                     ops::kLossRows),
                 .where = "head and loss"};
  Rewriter rw(graph, options.keep);
  FuseHeadLossReport report;
  const std::vector<bool> learns = learning(graph, options);
  for (const ir::OpId id : rw.order()) report.fused += fuse(rw, id, options, learns) ? 1 : 0;
  PLIMSOLL_ASSIGN(report.replaced, rw.finish());
  return report;
}

}  // namespace plimsoll::passes
