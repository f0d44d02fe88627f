// Rows with an instruction and an output.
#pragma once

#include <optional>

#include "corpora/example_line.h"

namespace plimsoll::corpora {

/// As LLaMA-Factory's template alpaca: "system" in place of the first sentences, the turns of "history"
/// before the instruction.
std::optional<BadExample> parse_instruction(const ExampleLine& line, Example& example);

}  // namespace plimsoll::corpora
