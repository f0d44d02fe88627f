#include "backends/cpu/kernels/gemm/patches.h"

#include <algorithm>
#include <cstring>

namespace plimsoll::cpu {

namespace {

/// The taps of a row of the kernel, of which some may lie outside the image.
struct KernelRow {
  const std::byte* x;              ///< where the first one lies, or would
  int64_t inside_from, inside_to;  ///< elements
  bool is_inside;                  ///< any of them

  void copy(int64_t from, int64_t to, int64_t size, std::byte* out) const {
    const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements * size); };
    if (!is_inside) {
      std::memset(out, 0, bytes(to - from));
      return;
    }
    const int64_t begin = std::clamp(inside_from, from, to), end = std::clamp(inside_to, begin, to);
    if (begin > from) std::memset(out, 0, bytes(begin - from));
    std::memcpy(out + bytes(begin - from), x + begin * size, bytes(end - begin));
    if (to > end) std::memset(out + bytes(end - from), 0, bytes(to - end));
  }
};

/// Where taps of a row of the kernel are neighbours in memory.
void copy_joined(const Patches& x, const PatchCorner& corner, int64_t k, int64_t count, int64_t size,
                 std::byte* to) {
  const int64_t row_taps = x.taps[1] * x.channels, pitch = x.spread[0] * x.width * x.pixel;
  int64_t row = k / row_taps, at = k % row_taps;
  KernelRow taps{x.data + (corner.offset + row * pitch) * size,
                 std::clamp<int64_t>(-corner.w, 0, x.taps[1]) * x.channels,
                 std::clamp<int64_t>(x.width - corner.w, 0, x.taps[1]) * x.channels, false};
  for (; count > 0; ++row, at = 0, taps.x += pitch * size) {
    const int64_t h = corner.h + row * x.spread[0], here = std::min(count, row_taps - at);
    taps.is_inside = h >= 0 && h < x.height && taps.inside_to > taps.inside_from;
    taps.copy(at, at + here, size, to);
    count -= here;
    to += here * size;
  }
}

}  // namespace

void copy_taps(const Patches& x, const PatchCorner& corner, int64_t k, int64_t count, int64_t size,
               std::byte* to) {
  if (x.spread[1] == 1 && x.pixel == x.channels) return copy_joined(x, corner, k, count, size, to);
  while (count > 0) {
    const PatchTap tap(x, k);
    const int64_t here = std::min(count, x.channels - tap.channel);
    const auto bytes = static_cast<size_t>(here * size);
    if (tap.is_inside(x, corner))
      std::memcpy(to, x.data + (corner.offset + tap.offset) * size, bytes);
    else
      std::memset(to, 0, bytes);
    k += here;
    count -= here;
    to += bytes;
  }
}

}  // namespace plimsoll::cpu
