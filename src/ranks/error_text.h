// Errors as messages between ranks.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::ranks {

std::string error_text(const Error& error);
/// What error_text wrote; kInternal for any other text.
Error parse_error(std::string_view text);

}  // namespace plimsoll::ranks
