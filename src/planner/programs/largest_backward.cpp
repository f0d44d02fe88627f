#include "planner/programs/largest_backward.h"

namespace plimsoll::planner {

const passes::Program* largest_backward(const passes::SessionPlan& session) {
  const passes::Program* largest = nullptr;
  for (const passes::Program& p : session.programs) {
    if (!passes::has_backward(p.id.role)) continue;
    if (largest == nullptr || p.plan.device().arena_bytes > largest->plan.device().arena_bytes) largest = &p;
  }
  return largest;
}

}  // namespace plimsoll::planner
