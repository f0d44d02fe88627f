// Derives the bytes that each issued step of a planned program reads and writes: what the memory room's
// judge of hazards takes.
#pragma once

#include "base/result.h"
#include "memory/hazards.h"
#include "passes/order/issue_order.h"

namespace plimsoll::passes {

/// A step an issue, in its order. Pools: the arena of each memory space, then each state of the graph. Every
/// op that runs is issued once, on its queue; values lie where the graph allows: a view where its operand
/// does, what is consumed under the result, an assigned value in its state or copied there. At the end each
/// state holds what it was assigned last. A strided view counts as the bytes from its first to its last
/// element. Errors: kInvalidArgument with the op and its layer where something of this does not hold.
Result<memory::QueueProgram> hazard_steps(const ir::Graph& graph, const Binding& binding,
                                          const MemoryPlan& plan, const IssueOrder& order);

}  // namespace plimsoll::passes
