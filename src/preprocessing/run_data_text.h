// RunData as text, for the way out of the process that prepares it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "preprocessing/run_data.h"

namespace plimsoll::preprocessing {

std::string run_data_text(const RunData& data);
/// What run_data_text gave. Errors: kIo where it is anything else.
Result<RunData> run_data_of(std::string_view text);

}  // namespace plimsoll::preprocessing
