#include "passes/order/check_hazards.h"

#include <fmt/format.h>

#include <string>

#include "ir/op_def.h"
#include "passes/order/hazard_steps.h"

namespace plimsoll::passes {
namespace {

/// "add (layers.1)".
std::string step_name(const ir::Graph& graph, const IssueOrder& order, int32_t step) {
  if (static_cast<size_t>(step) >= order.issues.size()) return "the end";
  const Issue& issue = order.issues[static_cast<size_t>(step)];
  if (issue.kind == Issue::Kind::kRecord || issue.kind == Issue::Kind::kWait)
    return fmt::format("the {} of event {} on {}", issue.kind == Issue::Kind::kWait ? "wait" : "record",
                       issue.event, name(issue.queue));
  const ir::Op& op = graph.op(graph.order()[static_cast<size_t>(issue.position)]);
  return op.layer.empty() ? std::string(op.def->name) : fmt::format("{} ({})", op.def->name, op.layer);
}

std::string pool_name(const ir::Graph& graph, int32_t pool) {
  const auto index = static_cast<size_t>(pool);
  if (index < ir::kNumSpaces) return std::string(name(static_cast<ir::MemorySpace>(index)));
  return fmt::format("state \"{}\"", graph.states()[index - ir::kNumSpaces].name);
}

}  // namespace

Status check_hazards(const ir::Graph& graph, const Binding& binding, const MemoryPlan& plan,
                     const IssueOrder& order) {
  PLIMSOLL_ASSIGN(const memory::QueueProgram program, hazard_steps(graph, binding, plan, order));
  const auto hazard = memory::find_hazard(program);
  if (!hazard) return Ok{};
  const memory::HazardNames names = {.step = [&](int32_t s) { return step_name(graph, order, s); },
                                     .pool = [&](int32_t p) { return pool_name(graph, p); }};
  return Error{ErrorCode::kInvalidArgument, memory::describe(*hazard, names), graph.name,
               "this is a bug in the planner"};
}

}  // namespace plimsoll::passes
