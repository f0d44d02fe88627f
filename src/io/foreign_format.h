// Recognises files of other formats by their first bytes, for messages that say what to
// do.
#pragma once

#include <optional>
#include <string_view>

namespace plimsoll::io {

struct ForeignFormat {
  const char* what;  ///< "this is a Git-LFS pointer, …"
  const char* hint;
};

/// By a file's first bytes (256 suffice); nothing where they are not known.
std::optional<ForeignFormat> recognise_format(std::string_view prefix);

}  // namespace plimsoll::io
