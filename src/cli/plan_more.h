// plan --frontier and plan --sweep: many plans of one run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "settings/run_config.h"

namespace plimsoll::cli {

/// Prints step time against memory, and draws it where `svg` names a file. Whether the run fits its own
/// budget is a finding. Errors: as prepare; kIo.
Status plan_frontier(const RunConfig& config, const std::string& svg, bool json);

/// Prints the plans over all combinations of the values of `texts`, "KEY=V1,V2". What fits is a finding.
/// Errors: as parse_sweep and plan_sweep.
Status plan_sweep(const RunConfig& config, const std::vector<std::string>& texts, bool json);

}  // namespace plimsoll::cli
