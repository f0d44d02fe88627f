// Source of the grammar: RFC 8259. The nesting of skipped values is counted, not recursed into.
#include "io/json_cursor.h"

#include <fmt/format.h>

#include <array>

#include "io/scalar.h"

namespace plimsoll::io {
namespace {

void append_utf8(std::string& text, uint32_t code) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    tail(6), tail(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

/// Bytes of the UTF-8 sequence that `text` starts with; 0 where it starts with none.
size_t sequence_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;   // overlong
  if (lead == 0xed && byte(1) >= 0xa0) return 0;  // a surrogate
  if (lead == 0xf0 && byte(1) < 0x90) return 0;   // overlong
  if (lead == 0xf4 && byte(1) >= 0x90) return 0;  // beyond U+10FFFF
  return length;
}

}  // namespace

int64_t utf8_error_at(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_bytes(text.substr(at));
    if (length == 0) return static_cast<int64_t>(at);
    at += length;
  }
  return -1;
}

bool JsonCursor::fail(std::string_view why) {
  if (error_.empty()) error_ = fmt::format("{} (byte {})", why, at_);
  return false;
}

void JsonCursor::skip_blanks() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

bool JsonCursor::take(char c) {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool JsonCursor::expect(char c) {
  if (take(c)) return true;
  return fail(at_ >= text_.size() ? "the text breaks off" : fmt::format("expected '{}'", c));
}

bool JsonCursor::at_end() {
  skip_blanks();
  return at_ == text_.size();
}

bool JsonCursor::word(std::string_view w) {
  if (!text_.substr(at_).starts_with(w)) return false;
  at_ += w.size();
  return true;
}

bool JsonCursor::hex4(uint32_t& code) {
  code = 0;
  if (text_.size() - at_ < 4) return fail("an escape breaks off");
  for (const size_t end = at_ + 4; at_ < end; ++at_) {
    const char c = text_[at_];
    const char lower = static_cast<char>(c | 0x20);
    if (!is_digit(c) && (lower < 'a' || lower > 'f')) return fail("an escape that is no hexadecimal number");
    code = code << 4 | static_cast<uint32_t>(is_digit(c) ? c - '0' : lower - 'a' + 10);
  }
  return true;
}

/// What follows a backslash.
bool JsonCursor::character(std::string& value) {
  static constexpr std::array<std::string_view, 8> kEscapes = {"\"\"", "\\\\", "//",  "b\b",
                                                               "f\f",  "n\n",  "r\r", "t\t"};
  if (at_ >= text_.size()) return fail("a string breaks off");
  const char c = text_[at_++];
  for (const std::string_view escape : kEscapes)
    if (escape[0] == c) return value += escape[1], true;
  if (c != 'u') return fail("an unknown escape");
  uint32_t code = 0;
  if (!hex4(code)) return false;
  if (code >= 0xd800 && code < 0xdc00) {
    uint32_t low = 0;
    if (!word("\\u")) return fail("half a surrogate pair");
    if (!hex4(low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return fail("half a surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xdc00 && code < 0xe000) {
    return fail("half a surrogate pair");
  }
  append_utf8(value, code);
  return true;
}

bool JsonCursor::string(std::string& value) {
  skip_blanks();
  value.clear();
  if (at_ >= text_.size() || text_[at_] != '"') return fail("expected a string");
  for (++at_; at_ < text_.size();) {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<unsigned char>(text_[at_]) >= 0x20)
      ++at_;
    value.append(text_, begin, at_ - begin);
    if (at_ >= text_.size()) break;
    const char c = text_[at_];
    if (c != '"' && c != '\\') return fail("a control character in a string");
    ++at_;
    if (c == '"') return true;
    if (!character(value)) return false;
  }
  return fail("a string breaks off");
}

/// The grammar of any number; at_ is behind it.
bool JsonCursor::number() {
  const auto digits = [&] {
    const size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ > begin;
  };
  word("-");
  if (!word("0") && !digits()) return fail("expected a value");
  if (word(".") && !digits()) return fail("a number breaks off");
  if (word("e") || word("E")) {
    if (!word("+")) word("-");
    if (!digits()) return fail("a number breaks off");
  }
  return true;
}

bool JsonCursor::integer(int64_t& value) {
  skip_blanks();
  const size_t begin = at_;
  value = 0;
  if (at_ >= text_.size() || (text_[at_] != '-' && !is_digit(text_[at_]))) return fail("expected an integer");
  if (!number()) return false;
  const std::string_view spelling = text_.substr(begin, at_ - begin);
  const bool negative = spelling[0] == '-';
  for (const char c : spelling.substr(negative ? 1 : 0)) {
    if (!is_digit(c)) return fail("a number that is no integer");
    const int64_t digit = negative ? '0' - c : c - '0';
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value))
      return fail("an integer that is too large");
  }
  return true;
}

bool JsonCursor::scalar() {
  std::string ignored;
  if (at_ < text_.size() && text_[at_] == '"') return string(ignored);
  return word("true") || word("false") || word("null") || number();
}

bool JsonCursor::skip(int max_depth) {
  std::string closing;  // the brackets that are open, as what closes them
  std::string ignored;
  while (true) {
    skip_blanks();
    bool opened = false;
    if (take('{') || take('[')) {
      closing += text_[at_ - 1] == '{' ? '}' : ']';
      if (static_cast<int>(closing.size()) > max_depth)
        return fail(fmt::format("nested deeper than {} levels", max_depth));
      opened = true;
    } else if (!scalar()) {
      return false;
    }
    while (!closing.empty() && take(closing.back())) closing.pop_back(), opened = false;
    if (closing.empty()) return true;
    if (!opened && !expect(',')) return false;
    if (closing.back() == '}' && (!string(ignored) || !expect(':'))) return false;
  }
}

}  // namespace plimsoll::io
