// A stretch of a text, in bytes.
#pragma once

#include <cstddef>

namespace plimsoll::tokenizers {

struct Span {
  size_t begin = 0;
  size_t end = 0;
  bool operator==(const Span&) const = default;
};

}  // namespace plimsoll::tokenizers
