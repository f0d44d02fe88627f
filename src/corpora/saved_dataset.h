// Files of data as people name them: a file, a pattern, or a folder that `datasets` wrote with save_to_disk.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::corpora {

/// As expand_glob; of a folder with a state.json the Arrow files that it lists, in its order. Errors: as
/// expand_glob; kBadData for a folder whose state.json is damaged or names what is not in it, for one that
/// holds several splits, and for any other folder, each with what to name instead.
Result<std::vector<std::string>> expand_data(const std::string& pattern);

}  // namespace plimsoll::corpora
