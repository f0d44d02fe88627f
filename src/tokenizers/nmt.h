// The Nmt normalizer: control characters vanish, what else means a blank becomes one.
#pragma once

#include <cstdint>
#include <optional>

namespace plimsoll::tokenizers {

/// What becomes of a character; nothing where it vanishes.
inline std::optional<uint32_t> nmt_character(uint32_t c) {
  const auto within = [c](uint32_t first, uint32_t last) { return c >= first && c <= last; };
  if (within(0x01, 0x08) || c == 0x0B || within(0x0E, 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
    return std::nullopt;
  const bool is_blank = within(0x09, 0x0D) || c == 0x1680 || within(0x200B, 0x200F) || c == 0x2028 ||
                        c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  return is_blank ? uint32_t{' '} : c;
}

}  // namespace plimsoll::tokenizers
