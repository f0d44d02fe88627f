// JSON text into a Tree.
#pragma once

#include <string_view>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::io {

/// Reads one JSON document.
/// Errors: kBadData for text that is no JSON (with the byte's position), too large, too deep, a key twice in
/// one object, a number beyond double. `where` is left to the caller, who knows the file.
Result<Tree> parse_json(std::string_view text, const TreeLimits& limits = {});

}  // namespace plimsoll::io
