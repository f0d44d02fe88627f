// The timeline of a program's memory as text.
#pragma once

#include <string>

#include "planner/report/memory_timeline.h"

namespace plimsoll::cli {

/// A chart of stacked letters - a class each, "*" for what was measured - with the peak marked above it and
/// the phases below, in lines of at most `columns` (at least 40) characters of ASCII. Empty where the program
/// does nothing.
std::string timeline_chart(const planner::MemoryTimeline& timeline, int columns);

/// The letters with their classes' bytes at the peak, a line each; what was measured among them.
std::string timeline_legend(const planner::MemoryTimeline& timeline);

/// The letter of a class in the chart.
char letter_of(planner::MemoryClass c);

}  // namespace plimsoll::cli
