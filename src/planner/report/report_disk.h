// The plan report's lines about the disk.
#pragma once

#include <string>

#include "planner/report/report.h"

namespace plimsoll::planner {

/// A line; nothing but for a training.
std::string disk_line(const PlanReport& r);
/// `disk` of the plan event.
io::Tree disk_event(const DiskReport& d);

}  // namespace plimsoll::planner
