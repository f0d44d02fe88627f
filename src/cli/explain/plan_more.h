// plan --frontier, plan --sweep and plan --table: many plans.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/commands.h"
#include "settings/run_config.h"

namespace plimsoll::cli {

/// Prints step time against memory, and draws it where `svg` names a file. Whether the run fits its own
/// budget is a finding. Errors: as prepare; kIo.
Status plan_frontier(const settings::RunConfig& config, const std::string& svg, bool json);

/// Prints the plans over all combinations of the values of `texts`, "KEY=V1,V2". What fits is a finding.
/// Errors: as parse_sweep and plan_sweep.
Status plan_sweep(const settings::RunConfig& config, const std::vector<std::string>& texts, bool json);

/// Where training.global_batch_size is auto: the throughput curve, on stdout where `shows` says so, and the
/// run with the batch that is chosen; else the run as it is. Errors: as choose_batch.
Result<settings::RunConfig> with_chosen_batch(const settings::RunConfig& config, bool shows, bool json);

/// Prints which model fits which card; the run file may be left out. Errors: as plan_cards of train/.
Status plan_cards(const RunArguments& arguments);

}  // namespace plimsoll::cli
