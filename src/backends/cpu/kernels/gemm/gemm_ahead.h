// Software prefetch for GEMM: the panel that a task packs next is fetched into the second-level cache
// between its products: packing then finds it there, and memory and arithmetic take the time of the
// longer one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace plimsoll::cpu {

/// Cache lines to fetch, `runs` times `lines` of them: those of a run lie `step` bytes apart, runs `next`.
/// They are asked for, never read, so they may reach beyond the operand; no bit depends on them.
struct GemmAhead {
  const std::byte* data = nullptr;
  int64_t lines = 0, step = 0, runs = 0, next = 0;
  int64_t taken = 0;  ///< of the first run

  struct Part {
    const std::byte* data;
    int64_t step;
  };
  /// The next `count` of a run; nothing is left: `otherwise`, again and again.
  Part take(int64_t count, const void* otherwise) {
    if (runs == 0) return {static_cast<const std::byte*>(otherwise), 0};
    const Part part{data + taken * step, step};
    taken += count;
    if (taken >= lines) {
      taken = 0;
      data += next;
      --runs;
    }
    return part;
  }
};

/// Elements of `size` bytes at data + (k * k_stride + line * line_stride) * size, k < depth, line < lines. Of
/// those that lie side by side neither way, none.
inline GemmAhead fetch_ahead_of(const std::byte* data, int64_t k_stride, int64_t line_stride, int64_t depth,
                                int64_t lines, int64_t size) {
  constexpr int64_t kLine = 64;
  if (depth <= 0 || lines <= 0) return {};
  if (line_stride == 1)
    return {.data = data,
            .lines = depth,
            .step = k_stride * size,
            .runs = ceil_div(lines * size, kLine) + 1,
            .next = kLine};
  if (k_stride != 1) return {};
  if (line_stride == depth)
    return {.data = data, .lines = ceil_div(lines * depth * size, kLine), .step = kLine, .runs = 1};
  return {.data = data,
          .lines = lines,
          .step = line_stride * size,
          .runs = ceil_div(depth * size, kLine) + 1,
          .next = kLine};
}

}  // namespace plimsoll::cpu
