// Names and paths in the columns of a table.
#pragma once

#include <cstddef>
#include <string>

namespace plimsoll {

/// Text of at most so many columns (bytes; one at least): of a longer one, whose end tells more, "~" and its
/// end.
inline std::string end_of(const std::string& text, size_t columns) {
  return text.size() <= columns ? text : "~" + text.substr(text.size() - columns + 1);
}

}  // namespace plimsoll
