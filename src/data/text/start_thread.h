// A thread more, or an error where the system gives none.
#pragma once

#include <fmt/format.h>

#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"

namespace plimsoll::text {

/// Starts `body` on another thread, which the vector joins at its end. Errors: kIo where the system allows no
/// further thread or has no memory for its stack.
template <typename Body>
Status start_thread(std::vector<std::jthread>& threads, Body body) {
  try {
    threads.emplace_back(std::move(body));
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kIo,
                 fmt::format("thread {} cannot be started: {}", threads.size() + 2, error.code().message()),
                 {},
                 "use fewer threads: --threads, runtime.threads"};
  }
  return Ok{};
}

}  // namespace plimsoll::text
