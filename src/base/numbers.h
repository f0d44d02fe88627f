// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace plimsoll {

/// 134515008 as "134,515,008".
std::string grouped(int64_t number);

}  // namespace plimsoll
