// Times as people read them.
#pragma once

#include <string>

namespace plimsoll {

/// "41s", "3m07s", "2h05m", "9d03h".
std::string duration_text(double seconds);

}  // namespace plimsoll
