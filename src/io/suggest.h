// "did you mean": the known name nearest to a mistyped one.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll::io {

/// Edit distance with swaps of neighbours (Damerau's, restricted), in single edits. Stops at `at_most`, the
/// answer where the distance is that or more.
int edit_distance(std::string_view a, std::string_view b, int at_most = std::numeric_limits<int>::max());

/// Whether somebody who wrote `name` may have meant `candidate`: at most a third of its letters are wrong, or
/// it is some of the candidate's words (epochs: num_epochs), or spells it out (bfloat16: bf16).
bool is_near(std::string_view name, std::string_view candidate);

/// The near candidate with the least edit distance to `name` (the first of equals), empty where none is near.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

/// "did you mean cosine?", empty where none is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

/// A hint: "the nearest is cosine", or "one of cosine, linear, constant" where none is near.
std::string nearest_hint(std::string_view name, std::span<const std::string> candidates);

}  // namespace plimsoll::io
