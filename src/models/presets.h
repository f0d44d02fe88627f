// Public model families by name, so that a plan needs no file. Each is the family's own config.json,
// shortened to the fields that matter, and goes through the same reader as a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"

namespace plimsoll {

/// The preset's config. Errors: kInvalidArgument naming the nearest known preset.
Result<ConfigJson> preset_config(std::string_view name);
/// All names, in the order of the table.
std::vector<std::string> preset_names();

}  // namespace plimsoll
