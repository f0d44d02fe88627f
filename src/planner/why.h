// Why a step is run as it is, for people and for machines.
#pragma once

#include <string>

#include "io/tree.h"
#include "planner/report.h"

namespace plimsoll::planner {

/// The way of a planned step, as others are held against it.
Alternative alternative_of(const PlanReport& report);

/// The `why` of the plan event.
Tree why_event(const PlanReport& report);
/// Lines below the table; empty where nothing was chosen.
std::string why_lines(const PlanReport& report);

}  // namespace plimsoll::planner
