// Live bytes over time: the floor under every plan, and what a report says about its peak.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/buffer.h"

namespace plimsoll::memory {

/// The live sum is constant on [lower, upper).
struct LiveSpan {
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t live_bytes = 0;
};

/// The live sum over time.
struct LiveProfile {
  std::vector<LiveSpan>
      spans;               ///< in order of time, neighbours differ; times with nothing alive are left out
  int64_t peak_bytes = 0;  ///< the largest live sum, 0 without buffers
  std::vector<LiveSpan> peaks;         ///< the spans that reach it, in order of time
  std::vector<int64_t> alive_at_peak;  ///< indices of the buffers alive in the first peak, largest first
};

/// Sweeps the buffers once. Precondition: check_buffers.
/// Cost: O(n log n).
LiveProfile live_profile(std::span<const Buffer> buffers);

/// Indices of the buffers alive at `time`, largest first, ties in the order of the input.
std::vector<int64_t> alive_at(std::span<const Buffer> buffers, int64_t time);

}  // namespace plimsoll::memory
