// The judge of planned programs: derives from the graph what each issued step reads and writes, and has the
// memory room prove that no way in which the queues fall beside each other changes what is read.
#pragma once

#include "base/result.h"
#include "passes/order/issue_order.h"

namespace plimsoll::passes {

/// Whether `order` runs the program as its graph says, on queues of any pace: each operand is, when it is
/// read, what its producer wrote - through views, over copies, in states behind their assignments -; nothing
/// is written over before it has been read; arenas are as large as planned. Uses places and offsets alone,
/// none of the lifetimes by which they were found. See hazard_steps.h and memory/hazards.h. Errors:
/// kInvalidArgument with the op that would read or write wrong, its layer, and the op that it meets.
Status check_hazards(const ir::Graph& graph, const Binding& binding, const MemoryPlan& plan,
                     const IssueOrder& order);

}  // namespace plimsoll::passes
