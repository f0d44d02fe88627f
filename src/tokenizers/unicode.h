// UTF-8 and the properties of code points, as the `tokenizers` package sees them (unicode_tables.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll::tokenizers {

/// The low three bits of a code point's properties; upper is Lu and Lt, letter is Lm and Lo.
enum CharClass : uint8_t { kOther, kSpace, kUpper, kLower, kLetter, kMark, kNumber };
constexpr uint8_t kClassBits = 0x07;
constexpr uint8_t kComposesBit = 0x08;  ///< NFC may change it or join it to the one before
constexpr uint8_t kWordBit = 0x10;      ///< \w
constexpr uint8_t kNewerBit = 0x20;   ///< younger than the normalizers' tables: passes through them untouched
constexpr uint8_t kAccentBit = 0x40;  ///< removed by StripAccents
constexpr uint8_t kNumericBit = 0x80;  ///< split off by Digits

constexpr uint32_t kReplacement = 0xFFFD;

/// start << 8 | properties, ascending by start; the generated table.
std::span<const uint32_t> property_runs();
/// One byte of properties for each code point, spread out at the first call.
const uint8_t* properties();

/// The code point at `p`, which must be the start of one in valid UTF-8, and its length.
struct CodePoint {
  uint32_t value;
  int length;
};
inline CodePoint decode(const char* p) {
  const auto byte = [p](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(p[i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}
/// The code point that ends right before `end`; there must be one.
inline CodePoint decode_before(const char* end) {
  const char* p = end - 1;
  while ((static_cast<unsigned char>(*p) & 0xC0) == 0x80) --p;
  return decode(p);
}
inline bool is_space(CodePoint c) { return (properties()[c.value] & kClassBits) == kSpace; }
void append_utf8(uint32_t code_point, std::string& out);

/// Bytes from the start of `text` that are valid UTF-8.
size_t valid_utf8_prefix(std::string_view text);
/// Bytes of the ill-formed maximal subpart that `text` starts with; 0 where it starts with a character.
size_t invalid_utf8_prefix(std::string_view text);
/// Appends `text` with each maximal ill-formed subpart replaced by U+FFFD (Unicode 3.9, as Python and Rust do
/// it).
void append_repaired(std::string_view text, std::string& out);

}  // namespace plimsoll::tokenizers
