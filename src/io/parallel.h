// Independent pieces of reading on a few threads that live no longer than the call.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace plimsoll::io {

/// Calls work(i, t) for each i below `count`, on `num_threads` threads t = 0, 1, …, this one among them; they
/// claim pieces in order, and what belongs to t is one thread's. After a failure no further piece is begun;
/// of several the one with the least i is returned, so that the number of threads does not show.
Status in_parallel(size_t count, int num_threads, const std::function<Status(size_t i, size_t t)>& work);

}  // namespace plimsoll::io
