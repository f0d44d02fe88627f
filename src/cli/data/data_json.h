// Words of the user's in the objects of --json.
#pragma once

#include <string_view>

#include "io/tree.h"

namespace plimsoll::cli {

/// A string; of what is no UTF-8, as names of files may be, each ill-formed part becomes U+FFFD, because JSON
/// has no other text.
io::Tree json_text(std::string_view text);

}  // namespace plimsoll::cli
