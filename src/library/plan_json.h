// A plan as JSON, for pls_plan_json.
#pragma once

#include <string>

#include "io/tree.h"
#include "library/own_plan.h"

namespace plimsoll::library {

/// Of an own model.
io::Tree plan_tree(const OwnPlan& plan);
/// Of a run: the `plan` event, with the names that both have.
io::Tree plan_tree(const planner::PlanReport& report);

}  // namespace plimsoll::library
