// "did you mean": the known name nearest to a mistyped one.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll {

/// Edit distance with swaps of neighbours (Damerau's, restricted), in single edits. Stops at `at_most`, the
/// answer where the distance is that or more.
int edit_distance(std::string_view a, std::string_view b, int at_most = std::numeric_limits<int>::max());

/// The candidate nearest to `name` (the first of equals), empty where there is none.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace plimsoll
