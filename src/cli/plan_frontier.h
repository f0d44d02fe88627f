// plan --frontier.
#pragma once

#include <string>

#include "base/result.h"
#include "settings/run_config.h"

namespace plimsoll::cli {

/// Prints step time against memory, and draws it where `svg` names a file. Whether the run fits its own
/// budget is a finding. Errors: as prepare; kIo.
Status plan_frontier(const RunConfig& config, const std::string& svg, bool json);

}  // namespace plimsoll::cli
