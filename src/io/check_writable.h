// For what works for minutes before it writes a file.
#pragma once

#include <string>

#include "base/result.h"

namespace plimsoll::io {

/// Whether a file could be written there. Leaves nothing. Errors: as AtomicFile::create.
Status check_writable(const std::string& path);

}  // namespace plimsoll::io
