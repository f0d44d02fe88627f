// Finds the assistant's turns in a rendered conversation if the template does not mark them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "templates/chat_template.h"
#include "templates/conversation.h"

namespace plimsoll::templates {

/// Renders other messages with the same template and variables.
using RenderMessages =
    std::function<Status(std::span<const Value> messages, bool add_generation_prompt, std::string& text)>;

/// The spans of the assistant's turns in `whole`, the text of all messages, rendered with the generation
/// prompt or without; those of messages that `wanted` (one a message) has. `eos` is the end-of-sequence
/// token's text, which some templates write behind the last turn only. Errors: kBadData that names the
/// message whose turn cannot be found, and why.
Status find_assistant_spans(Conversation& conversation, std::string_view whole,
                            std::span<const uint8_t> wanted, bool add_generation_prompt, std::string_view eos,
                            const RenderMessages& render, std::vector<TextSpan>& out);

}  // namespace plimsoll::templates
