// Resolves unquoted YAML scalars by the core schema of YAML 1.2.
#pragma once

#include <string>

#include "io/tree.h"

namespace plimsoll::io {

/// An ASCII digit, in any locale.
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// null, true, 12, 0x1f, 1e-4, .inf …; everything else is a string ("no" and "1_000" too).
/// An integer beyond 64 bits is a number, as in JSON readers.
Tree resolve_plain_scalar(std::string text);

}  // namespace plimsoll::io
