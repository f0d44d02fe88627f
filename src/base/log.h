// Messages for people, on stderr; results go to stdout and not through here.
#pragma once

#include <spdlog/spdlog.h>

namespace plimsoll {
namespace log = spdlog;  // log::info("…{}", x), log::warn, log::error; set up once in main
}  // namespace plimsoll
