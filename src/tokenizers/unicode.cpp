// UTF-8 by hand: ASCII eight bytes at a time, the rest by the table of well-formed sequences (Unicode 3.9,
// table 3-7).
#include "tokenizers/unicode.h"

#include <cstring>
#include <memory>

namespace plimsoll::tokenizers {
namespace {

constexpr uint32_t kCodePoints = 0x110000;

std::unique_ptr<uint8_t[]> spread_runs() {
  auto table = std::make_unique<uint8_t[]>(kCodePoints);
  const std::span<const uint32_t> runs = property_runs();
  for (size_t i = 0; i < runs.size(); ++i) {
    const uint32_t start = runs[i] >> 8;
    const uint32_t end = i + 1 < runs.size() ? runs[i + 1] >> 8 : kCodePoints;
    std::memset(table.get() + start, static_cast<int>(runs[i] & 0xFF), end - start);
  }
  return table;
}

struct Sequence {
  size_t length;  // of the whole sequence, or of its ill-formed maximal subpart
  bool valid;
};

/// What the non-ASCII byte at the start of `text` begins.
Sequence sequence_at(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (text.size() < 2 || byte(1) < least || byte(1) > most) return {1, false};
  for (size_t i = 2; i < length; ++i)
    if (i >= text.size() || (byte(i) & 0xC0) != 0x80) return {i, false};
  return {length, true};
}

}  // namespace

const uint8_t* properties() {
  static const std::unique_ptr<uint8_t[]> table = spread_runs();
  return table.get();
}

void append_utf8(uint32_t c, std::string& out) {
  const auto add = [&out](uint32_t byte) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      add(0xE0 | c >> 12);
    } else {
      add(0xF0 | c >> 18);
      add(0x80 | (c >> 12 & 0x3F));
    }
    add(0x80 | (c >> 6 & 0x3F));
  }
  add(0x80 | (c & 0x3F));
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (at + 8 <= text.size()) {
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Sequence sequence = sequence_at(text.substr(at));
    if (!sequence.valid) return at;
    at += sequence.length;
  }
  return at;
}

size_t invalid_utf8_prefix(std::string_view text) {
  if (text.empty() || static_cast<unsigned char>(text[0]) < 0x80) return 0;
  const Sequence sequence = sequence_at(text);
  return sequence.valid ? 0 : sequence.length;
}

void append_repaired(std::string_view text, std::string& out) {
  while (true) {
    const size_t valid = valid_utf8_prefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) return;
    append_utf8(kReplacement, out);
    text.remove_prefix(sequence_at(text).length);
  }
}

}  // namespace plimsoll::tokenizers
