// The memory module's view of a program: buffers with a lifetime and a size, and where a plan puts them.
// Times are positions in a schedule, sizes and offsets are bytes; nothing here knows of operations or
// tensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::memory {

/// The most that sizes and paddings of one assignment may add up to; every sum below it is safe in int64_t.
inline constexpr int64_t kMaxTotalBytes = int64_t{1} << 62;

/// One buffer: alive in [lower, upper), `size` bytes, its offset a multiple of `alignment`.
/// A buffer of size 0 is legal and takes part in no overlap.
struct Buffer {
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t size = 0;
  int64_t alignment = 1;
};

/// Where the buffers lie.
struct Placement {
  std::vector<int64_t> offsets = {};  ///< one per buffer, in the order of the input
  int64_t height = 0;                 ///< the largest offset + size
  int64_t lower_bound = 0;            ///< no assignment is lower than this
  bool optimal = false;               ///< the height is proven to be the least
  std::string method = {};            ///< what found it: "skyline load", "first fit size", "search", …
};

/// Whether `buffers` can be assigned at all.
/// Errors: kInvalidArgument naming the buffer where lower >= upper, size < 0, alignment < 1, or where the
/// sizes rounded up to their alignments add up to more than kMaxTotalBytes.
Status check_buffers(std::span<const Buffer> buffers);

}  // namespace plimsoll::memory
