// The timeline of a program's memory as text.
#pragma once

#include <string>

#include "planner/memory_timeline.h"

namespace plimsoll::cli {

/// A chart of stacked letters - a class each, named below it - with the peak marked above it and the phases
/// below, in lines of at most `columns` (at least 40) characters of ASCII. Empty where the program does
/// nothing.
std::string timeline_chart(const planner::MemoryTimeline& timeline, int columns);

/// The letter of a class in the chart.
char letter_of(planner::MemoryClass c);

}  // namespace plimsoll::cli
