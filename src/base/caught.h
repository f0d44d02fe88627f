// Converts exceptions of libraries into this project's errors.
#pragma once

#include <utility>

#include "base/result.h"

namespace plimsoll {

/// Within a catch block: what was thrown. Refused memory and what else the operating system refused are kIo;
/// anything else comes from a value that nobody foresaw, and is kBadData.
Error caught_error();

/// body(), or as its error what it throws; `body` returns a Result. For the threads' own bodies, and the
/// command line's.
template <typename Body>
auto caught(Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return caught_error();
  }
}

}  // namespace plimsoll
