// Joins the ranks of a training if a launcher has started this process as one of them.
#pragma once

#include <memory>

#include "base/result.h"
#include "cli/commands.h"
#include "ranks/group.h"

namespace plimsoll::cli {

/// Meets the other ranks, and adds to the run's overrides what follows from them: their number, this one's,
/// and a rank's part of the machine's threads. Null for one rank: nothing is opened and no thread started.
/// Errors: as load_run_config and ranks::Group::join.
Result<std::unique_ptr<ranks::Group>> join_ranks(RunArguments& arguments);

}  // namespace plimsoll::cli
