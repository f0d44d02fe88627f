// Parts of a tensor that is cut into pieces, one a rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace plimsoll::ranks {

/// What there is of [begin, begin + bytes).
template <typename T>
std::span<T> part(std::span<T> all, int64_t begin, int64_t bytes) {
  const auto size = static_cast<int64_t>(all.size());
  const int64_t first = std::clamp<int64_t>(begin, 0, size);
  return all.subspan(static_cast<size_t>(first),
                     static_cast<size_t>(std::clamp<int64_t>(begin + bytes, first, size) - first));
}

}  // namespace plimsoll::ranks
