// "{:>8}".format and "%5.2f" %: the parts of Python's format language that templates use.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "data/chat/heap.h"
#include "data/chat/value.h"

namespace plimsoll::chat {

/// str.format. Fields are {}, {0}, {name}, with .attribute and [item] behind, "!r" and "!s", and ":spec".
bool brace_format(Heap& heap, std::string_view text, std::span<const Value> positional,
                  std::span<const Keyword> keywords, Value& out);

}  // namespace plimsoll::chat
