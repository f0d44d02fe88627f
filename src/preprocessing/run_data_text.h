// What comes back from the process that has made the data ready: numbers and names as a text.
#pragma once

#include <string>
#include <string_view>

#include "preprocessing/run_data.h"

namespace plimsoll::train {

std::string run_data_text(const RunData& data);
/// Of a text that run_data_text made.
RunData parse_run_data(std::string_view text);

}  // namespace plimsoll::train
