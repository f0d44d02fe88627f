// A program with copies, bound, planned and issued: what the checks of hazards are tried on.
#pragma once

#include "ir/verifier.h"
#include "issue_simulator.h"
#include "ops/op_list.h"
#include "passes/memory/in_place.h"
#include "passes/offload/chunked_update.h"
#include "random_offload.h"
#include "training.h"

namespace plimsoll::fixtures {

struct PlannedStep {
  Graph graph;
  passes::Binding binding;
  passes::MemoryPlan plan;
  passes::IssueOrder order;
};

/// Each op behind all before it: an event after, a wait before every one on another queue. Mostly needless.
inline passes::IssueOrder one_by_one(const Graph& graph, const passes::Binding& binding) {
  using passes::Issue;
  passes::IssueOrder order;
  ir::Queue last = ir::Queue::kCompute;
  const auto change_to = [&](ir::Queue queue) {
    if (queue == last) return;
    order.issues.push_back({Issue::Kind::kRecord, last, -1, order.num_events});
    order.issues.push_back({Issue::Kind::kWait, queue, -1, order.num_events++});
    last = queue;
  };
  for (size_t p = 0; p < graph.order().size(); ++p) {
    const ir::Op& op = graph.op(graph.order()[p]);
    const auto& copied = binding.copied_assigns;
    const bool is_assign = op.def->name == "state_assign";
    if (op.def->is_view || op.def->name == "state") continue;
    if (is_assign && std::count(copied.begin(), copied.end(), graph.order()[p]) == 0) continue;
    change_to(op.queue);
    order.issues.push_back({op.def->is_copy || is_assign ? Issue::Kind::kCopy : Issue::Kind::kLaunch,
                            op.queue, static_cast<int32_t>(p), -1});
  }
  change_to(ir::Queue::kCompute);
  return order;
}

/// Binds and plans; every third op with a workspace.
inline Result<PlannedStep> plan_program(Graph graph, bool separate = false) {
  PLIMSOLL_TRY(ir::verify(graph));
  PLIMSOLL_ASSIGN(passes::InPlaceReport in_place, passes::in_place(graph));
  passes::BindOptions bind;
  bind.in_place = std::move(in_place.aliases);
  bind.device.accepts_strided = [](std::string_view op, size_t i) {
    return i == 0 && op != "copy_start" && op != "state_assign";
  };
  bind.device.workspace_bytes = [](const ir::OpTypes& t) { return t.op.size() % 3 == 0 ? int64_t{192} : 0; };
  bind.device.reaches = [](ir::MemorySpace space) { return space == ir::MemorySpace::kDevice; };
  PLIMSOLL_ASSIGN(passes::Binding binding, passes::bind_storage(graph, bind, ops::find_op));
  passes::MemoryPlan plan = passes::plan_memory(graph, binding, {.separate = separate});
  passes::IssueOrder order = passes::issue_order(graph, binding, plan);
  return PlannedStep{std::move(graph), std::move(binding), std::move(plan), std::move(order)};
}

/// Updates in windows of any size, as if something of them were loaded.
inline Status cut_updates(Graph& graph, Dice& dice) {
  passes::UpdateWindowsOptions options;
  options.offload.spaces.fill(ir::MemorySpace::kDisk);
  options.offload.least_bytes = 1;
  options.offload.window_elements = 4 * dice.range(1, 12);
  PLIMSOLL_TRY(passes::chunked_update(graph, options));
  return Ok{};
}

/// The random program of `seed`, with up to `trips` round trips.
inline Result<PlannedStep> planned_program(uint64_t seed, int64_t trips) {
  Dice dice(seed * 104'729 + 1);
  PLIMSOLL_ASSIGN(Trained t,
                  train_program(seed, some_passes(static_cast<uint64_t>(dice.range(0, (1 << 20) - 1))),
                                static_cast<Tail>(dice.range(0, 3))));
  if (dice.chance(50)) PLIMSOLL_TRY(cut_updates(t.graph, dice));
  RandomOffload(t.graph, seed).insert(trips);
  return plan_program(std::move(t.graph), dice.chance(10));
}

}  // namespace plimsoll::fixtures
