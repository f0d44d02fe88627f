// The run that a command is about, with what there is to say of it before it begins.
#pragma once

#include "base/result.h"
#include "cli/commands.h"
#include "settings/run_config.h"

namespace plimsoll::cli {

/// Reads run file and overrides, and prints their notes to stderr: settings without effect, products that
/// this processor has no instructions for. Measures the machine where it was not (first_use.h). Errors: as
/// load_run_config. `quietly`: prints and measures nothing, for a rank other than the first.
Result<settings::RunConfig> load_run(const RunArguments& arguments,
                                     settings::RunUse use = settings::RunUse::kPlan, bool quietly = false);

}  // namespace plimsoll::cli
