// plimsoll bench kernels: rates of the kernels that a step is made of, on this machine, now.
#pragma once

#include "base/result.h"

namespace plimsoll::cli {

/// Prints a line a kernel: shape, seconds (the least of several runs), GFLOP/s or GB/s. Takes a few seconds.
Status bench_kernels(bool json);

}  // namespace plimsoll::cli
