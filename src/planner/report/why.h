// Why a step is run as it is, for people and for machines.
#pragma once

#include <string>

#include "io/tree.h"
#include "planner/report/report.h"

namespace plimsoll::planner {

/// The way of a planned step, as others are held against it.
Alternative alternative_of(const PlanReport& report);

/// "4 x 8 sequences, recompute 3 of 12 layers": in a line.
std::string way_text(const Alternative& way);

/// The `why` of the plan event.
io::Tree why_event(const PlanReport& report);
/// Lines below the table; empty where nothing was chosen.
std::string why_lines(const PlanReport& report);

}  // namespace plimsoll::planner
