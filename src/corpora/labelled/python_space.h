// Tells what Python's str.split() and lstrip() take as white space.
#pragma once

#include "tokenizers/unicode.h"

namespace plimsoll::corpora {

/// Unicode's white space, and the separators of files, groups, records and units.
inline bool is_python_space(tokenizers::CodePoint c) {
  return tokenizers::is_space(c) || (c.value >= 0x1C && c.value <= 0x1F);
}

}  // namespace plimsoll::corpora
