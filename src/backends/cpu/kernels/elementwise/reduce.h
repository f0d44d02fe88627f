// The last step of a reduction over rows: granules' partial sums, added in order.
#pragma once

#include <cstdint>

#include "backends/cpu/thread_pool.h"

namespace plimsoll::cpu {

/// out[j] = ((acc[j] + partials[0][j]) + partials[1][j]) + ..., `acc` null: from partials[0].
/// partials [granules, cols] dense, granules >= 1; acc may be out.
void add_granules(const float* partials, int64_t granules, int64_t cols, const float* acc, float* out,
                  ThreadPool& pool);

}  // namespace plimsoll::cpu
