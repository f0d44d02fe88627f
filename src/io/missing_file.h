// The hint for a file that is not there: to which folder its relative path was relative.
#pragma once

#include <string>

namespace plimsoll::io {

/// "check the path"; of a relative one also the folder in which it was looked for.
std::string missing_hint(const std::string& path);

}  // namespace plimsoll::io
