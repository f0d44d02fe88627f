// What one landing need not try whole: a part, which ctest has the commit choose (PLIMSOLL_PART,
// tests/CMakeLists.txt). Without that variable, as in `make campaign`, all.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace plimsoll {

/// Whether item `i` is in this landing's part, one in `parts`.
inline bool in_part(size_t i, size_t parts) {
  const char* part = std::getenv("PLIMSOLL_PART");
  return part == nullptr || i % parts == std::strtoul(part, nullptr, 10) % parts;
}

/// The items of a list that are.
template <class T>
std::vector<T> part_of(const std::vector<T>& all, size_t parts) {
  std::vector<T> some;
  for (size_t i = 0; i < all.size(); ++i)
    if (in_part(i, parts)) some.push_back(all[i]);
  return some;
}

}  // namespace plimsoll
