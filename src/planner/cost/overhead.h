// Memory outside of plans: the binary, its libraries, stacks, the allocator's own, and the graph that the
// planner holds. Measured once per build by running a small and a larger model, stored beside the binary.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace plimsoll::planner {

/// Bytes of a process beyond what its plan lists: base + per_op * ops + per_thread * threads.
struct ProcessOverhead {
  int64_t base_bytes = 24 << 20;
  int64_t per_op_bytes = 3 << 10;
  int64_t per_thread_bytes = 128 << 10;
  bool measured = false;  ///< false: the conservative values above

  [[nodiscard]] int64_t bytes(int64_t num_ops, int64_t num_threads) const {
    return base_bytes + per_op_bytes * num_ops + per_thread_bytes * num_threads;
  }
};

/// The file beside this binary, "<binary>.overhead".
std::string overhead_path();
/// What load_overhead gives from here on, in a process that is not the program's own: a library's caller.
/// Call it before other threads plan.
void set_overhead(const ProcessOverhead& overhead);
/// The stored measurement, or the conservative default where there is none that can be read.
ProcessOverhead load_overhead();
/// Errors: kIo.
Status store_overhead(const ProcessOverhead& overhead, const std::string& path);

}  // namespace plimsoll::planner
