// The timeline as a picture: a stacked area for each class over the ops of the program, the peak and the
// phases marked. One file without references, for light and dark pages.
#pragma once

#include <string>

#include "planner/report/memory_timeline.h"

namespace plimsoll::planner {

/// An SVG document of 920 x 484; `title` stands above the picture.
std::string timeline_svg(const MemoryTimeline& timeline, const std::string& title);

}  // namespace plimsoll::planner
