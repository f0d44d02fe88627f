#include "planner/report/precision_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/op_def.h"
#include "ir/op_query.h"

namespace plimsoll::planner {
namespace {

using ir::Graph;
using ir::maker;
using ir::Op;
using ir::OpId;
using ir::takes_attr;
using ir::ValueId;

std::string name_of(const Op& op) {
  return op.def->state == ir::StateAccess::kRead ? op.attrs.str("name") : std::string(op.def->name);
}

/// What keeps the maker from storing the cast's dtype. Ops with an attribute `out` could; those with
/// `precision` store what their products run in.
std::string why_stored(const Op& made_by, const CastUse& cast, bool is_shared) {
  if (made_by.def->state == ir::StateAccess::kRead)
    return fmt::format("{} is kept in {}", cast.op, cast.from);
  if (is_shared) return fmt::format("other ops read {}'s {}", cast.op, cast.from);
  if (made_by.def->rounded_operands > 0) return fmt::format("{} stores its products' {}", cast.op, cast.from);
  if (takes_attr(made_by, "out")) return fmt::format("{} gives {}", cast.op, cast.from);
  return fmt::format("{} stores its operands' dtype", cast.op);
}

/// The dtype of the state of that class that belongs to the parameter; empty where there is none.
std::string state_of(const passes::SessionPlan& session, ir::StateClass state_class,
                     const std::string& parameter) {
  for (const passes::SessionState& s : session.states)
    if (s.decl.state_class == state_class && s.decl.name.ends_with("." + parameter))
      return std::string(ir::name(s.decl.type.dtype));
  return "";
}

}  // namespace

std::vector<CastUse> casts_of(const Graph& graph) {
  const Lists<OpId> uses = graph.uses();
  std::vector<CastUse> casts;
  for (const OpId id : graph.order()) {
    const Op& op = graph.op(id);
    if (!op.def->is_cast) continue;
    const Op& made_by = maker(graph, op.inputs[0]);
    const auto shape = graph.type(op.outputs[0]).shape.dims();
    CastUse cast{graph.name,
                 name_of(made_by),
                 op.layer,
                 {shape.begin(), shape.end()},
                 std::string(ir::name(graph.type(op.inputs[0]).dtype)),
                 std::string(ir::name(graph.type(op.outputs[0]).dtype))};
    for (const OpId reader : uses[static_cast<size_t>(op.outputs[0].index)]) {
      const std::string name(graph.op(reader).def->name);
      if (std::find(cast.readers.begin(), cast.readers.end(), name) == cast.readers.end())
        cast.readers.push_back(name);
      ++cast.uses;
    }
    cast.recomputed = op.recomputed;
    cast.block = op.block;
    const auto& others = uses[static_cast<size_t>(op.inputs[0].index)];
    const bool is_shared =
        std::any_of(others.begin(), others.end(), [&](OpId other) { return !graph.op(other).def->is_cast; });
    cast.why = fmt::format("{}; {} {} what is stored", why_stored(made_by, cast, is_shared),
                           fmt::join(cast.readers, ", "), cast.readers.size() > 1 ? "read" : "reads");
    casts.push_back(std::move(cast));
  }
  return casts;
}

std::map<std::string, std::set<std::string>, std::less<>> precisions_of_products(
    const passes::SessionPlan& session) {
  std::map<std::string, std::set<std::string>, std::less<>> precisions;
  for (const passes::Program& program : session.programs) {
    const Graph& graph = program.graph;
    for (const OpId id : graph.order()) {
      const Op& op = graph.op(id);
      if (op.def->rounded_operands == 0) continue;
      for (size_t i = 0; i < static_cast<size_t>(op.def->rounded_operands); ++i) {
        const auto* precision = op.attrs.find("precision");
        for (const Op* state : ir::states_read(graph, op.inputs[i]))
          precisions[state->attrs.str("name")].insert(precision == nullptr ? "f32"
                                                                           : op.attrs.str("precision"));
      }
    }
  }
  return precisions;
}

std::vector<WeightStorage> weights_of(const models::Model& model, const passes::SessionPlan& session,
                                      const optimizers::StateDtypes& state, bool accumulates) {
  const auto products = precisions_of_products(session);
  std::vector<WeightStorage> weights;
  for (const models::Parameter& p : model.parameters()) {
    WeightStorage w{
        p.name, std::string(ir::name(p.dtype)), state_of(session, ir::StateClass::kMasterWeight, p.name),
        p.trained ? std::string(ir::name(accumulates ? state.accumulators : state.gradients)) : "",
        state_of(session, ir::StateClass::kOptimizerState, p.name)};
    if (p.trained && (w.moments == "bf16" || (w.stored == "bf16" && w.master.empty())))
      w.rounding = state.stochastic ? "stochastic" : "nearest";
    if (const auto found = products.find(p.name); found != products.end()) w.products = found->second;
    w.block = p.block;
    weights.push_back(std::move(w));
  }
  return weights;
}

}  // namespace plimsoll::planner
