// Reads of a file that the system has in its cache: data and checkpoints are often read so.
#pragma once

#include <string>

#include "base/result.h"

namespace plimsoll::measuring {

/// Bytes a second, of a file without a name in `folder`; 0 where its file system knows none such. Errors:
/// kIo.
Result<double> cached_read_bandwidth(const std::string& folder);

}  // namespace plimsoll::measuring
