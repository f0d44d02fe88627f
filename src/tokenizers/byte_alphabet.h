// The printable characters that stand for bytes in byte-level vocabularies, as GPT-2 chose them.
#pragma once

#include <array>
#include <cstdint>

namespace plimsoll::tokenizers {

/// The character of each byte: printable Latin-1 stands for itself, the other 68 bytes follow from U+0100 on.
constexpr std::array<uint16_t, 256> kByteChars = [] {
  std::array<uint16_t, 256> chars{};
  uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    chars[byte] = printable ? static_cast<uint16_t>(byte) : next++;
  }
  return chars;
}();

/// The byte of each of those characters; -1 for other characters below U+0144.
constexpr std::array<int16_t, 0x144> kCharBytes = [] {
  std::array<int16_t, 0x144> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) bytes[kByteChars[byte]] = static_cast<int16_t>(byte);
  return bytes;
}();

}  // namespace plimsoll::tokenizers
