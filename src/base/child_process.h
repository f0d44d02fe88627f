// Work done in a process of its own, for what needs memory that this process must never have held: its peak
// is planned.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace plimsoll {

/// Forks, runs `work` in the child and returns what it returned. The child writes to the same stderr; its
/// stdout stays empty, and it ends when this process does. SIGINT and SIGTERM of this process reach it as
/// SIGTERM. Call while no other thread runs. Errors: the child's; kIo where there can be no child, or it was
/// killed.
Result<std::string> in_child_process(const std::function<Result<std::string>()>& work);

}  // namespace plimsoll
