// The conditions under which every later sum of sizes is safe.
#include "memory/buffer.h"

#include <fmt/format.h>

namespace plimsoll::memory {

Status check_buffers(std::span<const Buffer> buffers) {
  int64_t total = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    auto bad = [&](std::string what) {
      return Error{.what = std::move(what), .where = fmt::format("buffer {}", i)};
    };
    if (b.lower >= b.upper) return bad(fmt::format("lifetime [{}, {}) is empty", b.lower, b.upper));
    if (b.size < 0) return bad(fmt::format("size {} is negative", b.size));
    if (b.alignment < 1) return bad(fmt::format("alignment {} is not positive", b.alignment));
    if (b.size > kMaxTotalBytes - total || b.alignment - 1 > kMaxTotalBytes - total - b.size)
      return bad(fmt::format("sizes add up to more than {} bytes", kMaxTotalBytes));
    total += b.size + b.alignment - 1;
  }
  return Ok{};
}

}  // namespace plimsoll::memory
