// Turns a bound and placed program into the steps that the host issues: kernels and copies on their queues,
// and the events that order queues among each other.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "passes/memory/memory_plan.h"

namespace plimsoll::passes {

struct Issue {
  enum class Kind : uint8_t {
    kLaunch,  ///< the op's kernel
    kCopy,    ///< bytes from the op's operand to its result, or to the state that it assigns
    kRecord,  ///< the event stands for all issued on the queue so far
    kWait     ///< what is issued on the queue from here on begins after the event
  };
  Kind kind = Kind::kLaunch;
  ir::Queue queue = ir::Queue::kCompute;
  int32_t position = -1;  ///< of the op in the order; -1 for records and waits
  int32_t event = -1;     ///< of records and waits
};

/// In the order of issue, which is a legal order of execution. Every queue begins behind the program's start,
/// a point of kCompute before the first issue, and kCompute ends behind all that was issued anywhere. An
/// event is recorded once.
struct IssueOrder {
  std::vector<Issue> issues;
  int32_t num_events = 0;
};

/// An op waits for the last writers of what it reads, for the readers and writers of what it writes, and for
/// the last users of the bytes that its results take over in the arena. Where the waits before it imply that,
/// no event is made: none is superfluous.
IssueOrder issue_order(const ir::Graph& graph, const Binding& binding, const MemoryPlan& plan);

}  // namespace plimsoll::passes
