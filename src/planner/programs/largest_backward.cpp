#include "planner/programs/largest_backward.h"

namespace plimsoll::planner {

const passes::Program* largest_backward(const passes::SessionPlan& session) {
  const passes::Program* largest = nullptr;
  for (const passes::Program& p : session.programs) {
    const bool trains = p.graph.name.starts_with("step") || p.graph.name.starts_with("micro_");
    if (trains && (largest == nullptr || p.plan.device().arena_bytes > largest->plan.device().arena_bytes))
      largest = &p;
  }
  return largest;
}

}  // namespace plimsoll::planner
