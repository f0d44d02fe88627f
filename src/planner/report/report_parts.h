// The plan report's breakdown of step time.
#pragma once

#include <string>

#include "io/tree.h"
#include "planner/report/report.h"

namespace plimsoll::planner {

/// A member a part that takes time: {"seconds", "bound_by": "arithmetic" | "memory" | "link"}.
io::Tree parts_event(const StepSeconds& seconds);
/// "  products           0.31 s  81 %  bound by arithmetic", a line a part.
std::string parts_lines(const StepSeconds& seconds);
/// "calibrated rates", "from data sheets, not measured".
std::string rates_text(const PlanReport& report);

}  // namespace plimsoll::planner
