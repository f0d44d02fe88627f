// YAML text into a Tree: the 1.2 core schema (1e-4 is a number, `no` is a string). Anchors and aliases are
// copied within the limit of nodes; tags other than the core's and a second document are refused.
#pragma once

#include <string_view>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::io {

/// Reads one YAML document; empty text is null.
/// Errors: kInvalidArgument with line and column for text that is no YAML, too large, too deep, a key twice.
Result<Tree> parse_yaml(std::string_view text, const TreeLimits& limits = {});

}  // namespace plimsoll::io
