// The program of a session that decides how much memory training needs.
#pragma once

#include "passes/session_plan.h"

namespace plimsoll::planner {

/// The one with a backward pass whose arena on the device is largest; null where none has one.
const passes::Program* largest_backward(const passes::SessionPlan& session);

}  // namespace plimsoll::planner
