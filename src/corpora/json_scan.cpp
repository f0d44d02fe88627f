// Source of the grammar: RFC 8259. Strings are gone through eight bytes at a time.
#include "corpora/json_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tokenizers/unicode.h"

namespace plimsoll::corpora {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101u;
constexpr uint64_t kHighs = 0x8080808080808080u;
static_assert(std::endian::native == std::endian::little, "the first byte of a word is its lowest");

/// A high bit for each byte that is zero; those above the first may be wrong.
constexpr uint64_t zeros(uint64_t x) { return (x - kOnes) & ~x & kHighs; }
/// The same for bytes that end a stretch of plain characters: '"', '\\', and those below 0x20.
constexpr uint64_t specials(uint64_t x) {
  const uint64_t controls = (x - kOnes * 0x20) & ~x & kHighs;
  return zeros(x ^ kOnes * '"') | zeros(x ^ kOnes * '\\') | controls;
}

/// The first quote, backslash or control character at `at` or behind it, or the text's size.
size_t plain_end(std::string_view text, size_t at) {
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if (const uint64_t found = specials(word); found != 0)
      return at + static_cast<size_t>(std::countr_zero(found)) / 8;
  }
  while (at < text.size() && text[at] != '"' && text[at] != '\\' &&
         static_cast<unsigned char>(text[at]) >= 0x20)
    ++at;
  return at;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The code unit of "\uXXXX" at `at`, or -1.
int32_t code_unit(std::string_view text, size_t at) {
  if (text.size() - at < 6 || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int32_t code = 0;
  for (size_t i = at + 2; i < at + 6; ++i) {
    const char c = text[i];
    const char lower = static_cast<char>(c | 0x20);
    if (!is_digit(c) && (lower < 'a' || lower > 'f')) return -1;
    code = code << 4 | (is_digit(c) ? c - '0' : lower - 'a' + 10);
  }
  return code;
}
bool is_high(int32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low(int32_t code) { return code >= 0xDC00 && code < 0xE000; }

char escaped_char(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;
  }
}

}  // namespace

bool JsonScanner::fail(std::string_view why) {
  if (error_.empty()) error_ = fmt::format("{} (byte {})", why, at_ + 1);
  return false;
}

void JsonScanner::skip_blanks() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
}

bool JsonScanner::take(char c) {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool JsonScanner::expect(char c) {
  if (take(c)) return true;
  return fail(at_ >= text_.size() ? "it breaks off" : fmt::format("expected '{}'", c));
}

bool JsonScanner::expect_end() {
  skip_blanks();
  return at_ == text_.size() || fail("something follows the end");
}

bool JsonScanner::word(std::string_view w) {
  if (!text_.substr(at_).starts_with(w)) return false;
  at_ += w.size();
  return true;
}

bool JsonScanner::digits() {
  const size_t begin = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  return at_ > begin;
}

bool JsonScanner::number() {
  word("-");
  if (word("Infinity")) return true;
  if (!word("0") && !digits()) return fail(at_ >= text_.size() ? "it breaks off" : "expected a value");
  if (word(".") && !digits()) return fail("a number breaks off");
  if (word("e") || word("E")) {
    if (!word("+")) word("-");
    if (!digits()) return fail("a number breaks off");
  }
  return true;
}

bool JsonScanner::scalar() {
  if (at_ < text_.size() && text_[at_] == '"') return pass_string();
  return word("true") || word("false") || word("null") || word("NaN") || number();
}

/// What a backslash begins; at_ is at it.
bool JsonScanner::pass_escape() {
  static constexpr std::string_view kEscapes = "\"\\/bfnrt";
  if (at_ + 1 >= text_.size()) return fail("a string breaks off");
  if (text_[at_ + 1] != 'u') {
    if (kEscapes.find(text_[at_ + 1]) == kEscapes.npos) return fail("an unknown escape");
    at_ += 2;
    return true;
  }
  const int32_t code = code_unit(text_, at_);
  if (code < 0) return fail("an escape that is no four hexadecimal digits");
  const size_t pair_bytes = is_high(code) && is_low(code_unit(text_, at_ + 6)) ? 6 : 0;
  if (pair_bytes == 0 && (is_high(code) || is_low(code))) lone_surrogates_.push_back(at_);
  at_ += 6 + pair_bytes;
  return true;
}

bool JsonScanner::pass_string() {
  for (++at_;;) {
    at_ = plain_end(text_, at_);
    if (at_ >= text_.size()) return fail("a string breaks off");
    const char c = text_[at_];
    if (c == '"') return ++at_, true;
    if (c != '\\') return fail("a control character in a string");
    if (!pass_escape()) return false;
  }
}

bool JsonScanner::string(std::string_view& value) {
  skip_blanks();
  const size_t begin = at_;
  if (at_ >= text_.size()) return fail("it breaks off");
  if (text_[at_] != '"') return fail("expected a string");
  if (!pass_string()) return false;
  value = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonScanner::value(std::string_view& value) {
  skip_blanks();
  const size_t begin = at_;
  std::string closing;  // the brackets that are open, as what closes them
  std::string_view key;
  for (;;) {
    skip_blanks();
    bool opened = false;
    if (take('{') || take('[')) {
      closing += text_[at_ - 1] == '{' ? '}' : ']';
      if (closing.size() > kMaxDepth) return fail("it is nested too deep");
      opened = true;
    } else if (!scalar()) {
      return false;
    }
    while (!closing.empty() && take(closing.back())) closing.pop_back(), opened = false;
    if (closing.empty()) break;
    if (!opened && !expect(',')) return false;
    if (closing.back() == '}' && (!string(key) || !expect(':'))) return false;
  }
  value = text_.substr(begin, at_ - begin);
  return true;
}

void append_unescaped(std::string_view string, std::string& out) {
  const std::string_view text = string.substr(1, string.size() - 2);
  for (size_t at = 0; at < text.size();) {
    const size_t escape = std::min(text.find('\\', at), text.size());
    out.append(text, at, escape - at);
    at = escape;
    if (at == text.size()) break;
    if (text[at + 1] != 'u') {
      out += escaped_char(text[at + 1]);
      at += 2;
      continue;
    }
    int32_t code = code_unit(text, at);
    at += 6;
    if (is_high(code) && at < text.size() && is_low(code_unit(text, at))) {
      code = 0x10000 + ((code - 0xD800) << 10) + (code_unit(text, at) - 0xDC00);
      at += 6;
    } else if (is_high(code) || is_low(code)) {
      code = tokenizers::kReplacement;
    }
    tokenizers::append_utf8(static_cast<uint32_t>(code), out);
  }
}

void append_quoted(std::string_view text, std::string& out) {
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const size_t end = plain_end(text, at);
    out.append(text, at, end - at);
    if (end == text.size()) break;
    const char c = text[end];
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    at = end + 1;
  }
  out += '"';
}

}  // namespace plimsoll::corpora
