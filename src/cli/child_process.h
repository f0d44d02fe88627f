// Work done in a process of its own, for what needs memory that this process must never have held: its peak
// is planned.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace plimsoll::cli {

/// Forks, runs `work` in the child and returns what it returned, its error whole or none of it. The child
/// writes to the same stderr; its stdout stays empty, and it ends when this process does. SIGINT and SIGTERM
/// of this process reach it as SIGTERM. Where threads of this program run (Thread::num_running), `work` is
/// done within this process instead, which then has its peak. Errors: the child's; kIo where there can be no
/// child, it was killed, or its answer is not whole.
Result<std::string> in_child_process(const std::function<Result<std::string>()>& work);

}  // namespace plimsoll::cli
