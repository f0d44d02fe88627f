// The plan report's breakdown of step time.
#pragma once

#include <string>

#include "io/tree.h"
#include "planner/report/report.h"

namespace plimsoll::planner {

/// A member a part that takes time: {"seconds", "bound_by": "arithmetic" | "memory" | "link" | "network"}.
io::Tree parts_event(const StepSeconds& seconds);
/// "  products           0.31 s  81 %  bound by arithmetic", a line a part.
std::string parts_lines(const StepSeconds& seconds);
/// Seconds of a step in which a rank waits for bytes of others and computes nothing.
double exposed_seconds(const PlanReport& report);
/// And those that it communicates while it computes.
double hidden_seconds(const PlanReport& report);
/// Of several ranks: {"bytes", "exposed_seconds", "hidden_seconds", "described"}.
io::Tree network_event(const PlanReport& report);
/// "Communication: each rank sends and receives 1.2 GiB per step, …"; empty of one rank.
std::string network_line(const PlanReport& report);
/// "calibrated rates", "from data sheets, not measured".
std::string rates_text(const PlanReport& report);

}  // namespace plimsoll::planner
