// Bounded reads of big- and little-endian numbers from untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/at.h"

namespace plimsoll::images {

using Bytes = std::span<const std::byte>;

/// Whether bytes [offset, offset + count) are there.
inline bool has(Bytes bytes, int64_t offset, int64_t count) {
  const auto size = static_cast<int64_t>(bytes.size());
  return offset >= 0 && count >= 0 && offset <= size && count <= size - offset;
}

/// The number of `count` (at most 4) bytes at `offset`, 0 where they are not all there.
inline uint32_t read_number(Bytes bytes, int64_t offset, int count, bool little_endian = false) {
  if (!has(bytes, offset, count)) return 0;
  uint32_t value = 0;
  for (int i = 0; i < count; ++i) {
    const auto byte = static_cast<uint32_t>(bytes[at(offset + i)]);
    value |= byte << (8 * (little_endian ? i : count - 1 - i));
  }
  return value;
}

inline bool starts_with(Bytes bytes, int64_t offset, std::string_view text) {
  return has(bytes, offset, static_cast<int64_t>(text.size())) &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

}  // namespace plimsoll::images
