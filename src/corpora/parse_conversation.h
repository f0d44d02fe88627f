// Rows with conversations: messages, ShareGPT's turns, prompt and completion as messages.
#pragma once

#include <optional>

#include "corpora/example_line.h"

namespace plimsoll::corpora {

std::optional<BadExample> parse_messages(const ExampleLine& line, Example& example);
std::optional<BadExample> parse_share_gpt(const ExampleLine& line, Example& example);
std::optional<BadExample> parse_prompt_messages(const ExampleLine& line, Example& example);

}  // namespace plimsoll::corpora
