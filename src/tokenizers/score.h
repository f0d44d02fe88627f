// Scores of Unigram pieces, as the `tokenizers` package reads them from JSON. Its reader is quick and not
// always exact to the last bit, and the last bit may decide between two ways to cut a word.
#pragma once

#include <optional>
#include <string_view>

namespace plimsoll::tokenizers {

/// `spelling`: a number as JSON has it. Nothing where it is beyond the largest double. Source: serde_json
/// 1.0, without its feature float_roundtrip.
std::optional<double> read_score(std::string_view spelling);

}  // namespace plimsoll::tokenizers
