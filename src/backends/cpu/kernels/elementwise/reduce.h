// The last step of a reduction over rows: granules' partial sums, added in order.
#pragma once

#include <cstdint>

#include "backends/cpu/kernel.h"

namespace plimsoll::cpu {

/// out[j] = ((acc[j] + partials[0][j]) + partials[1][j]) + ..., `acc` null: from partials[0].
/// partials [granules, cols] dense, granules >= 1; acc may be out.
void add_granules(const float* partials, int64_t granules, int64_t cols, const float* acc, float* out,
                  ThreadPool& pool);
/// The same onto an accumulator that may be absent, rounded once to the dtype of `out`, which acc has too;
/// `row` [cols] is scratch.
void add_granules(const float* partials, int64_t granules, const TensorRef& acc, const TensorRef& out,
                  float* row, ThreadPool& pool);

}  // namespace plimsoll::cpu
