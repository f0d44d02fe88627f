#include "backends/cpu/kernels/gemm/patches.h"

#include <algorithm>
#include <cstring>

namespace plimsoll::cpu {

void copy_taps(const Patches& x, const PatchCorner& corner, int64_t k, int64_t count, int64_t size,
               std::byte* to) {
  // Where taps of a row of the kernel are neighbours in memory, they are copied together.
  const bool joined = x.spread[1] == 1 && x.pixel == x.channels;
  while (count > 0) {
    const PatchTap tap(x, k);
    const int64_t across = k / x.channels % x.taps[1];
    int64_t pixels = 1;
    const bool inside = tap.is_inside(x, corner);
    if (joined && inside) pixels = std::min(x.taps[1] - across, x.width - corner.w - tap.across);
    const int64_t here = std::min(count, pixels * x.channels - tap.channel);
    const auto bytes = static_cast<size_t>(here * size);
    if (inside)
      std::memcpy(to, x.data + (corner.offset + tap.offset) * size, bytes);
    else
      std::memset(to, 0, bytes);
    k += here;
    count -= here;
    to += bytes;
  }
}

}  // namespace plimsoll::cpu
