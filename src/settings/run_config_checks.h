// What must hold between the settings of a run file, once all have been read.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "settings/run_config.h"

namespace plimsoll {

/// Settings set explicitly, by path; aliases by their own name.
using GivenSettings = std::set<std::string, std::less<>>;

/// What must hold between settings; derives what follows from them. Errors: kInvalidArgument.
Status check_run(RunConfig& config, const GivenSettings& given);
/// Nothing is asked for that is not there yet. Errors: kInvalidArgument, with what is.
Status check_supported(const RunConfig& config);

}  // namespace plimsoll
