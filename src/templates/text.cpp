// Character properties come from utf8proc; what they are used for follows Python's documentation of str.
#include "templates/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "tokenizers/unicode.h"

namespace plimsoll::templates {
namespace {

using tokenizers::append_utf8;
using tokenizers::CodePoint;
using tokenizers::decode;
using tokenizers::decode_before;

utf8proc_category_t category(uint32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

bool is_cased(uint32_t c) {
  const utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT;
}
/// False where Unicode's SpecialCasing makes several letters of it, or one that has no other case.
bool append_upper(uint32_t c, bool title, std::string& out) {
  const auto code = static_cast<utf8proc_int32_t>(c);
  const auto changed = static_cast<uint32_t>(title ? utf8proc_totitle(code) : utf8proc_toupper(code));
  const bool has_iota =
      c >= 0x1F80 && c <= 0x1FFC;  // Greek with an iota below, which stands beside a capital
  if (c == 0xDF || has_iota || (changed == c && category(c) == UTF8PROC_CATEGORY_LL)) return false;
  append_utf8(changed, out);
  return true;
}

bool append_lower(uint32_t c, std::string& out) {
  if (c == 0x130 || c == 0x3A3) return false;
  append_utf8(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
  return true;
}

bool is_printable(uint32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

bool contains(std::string_view characters, CodePoint c, const char* at) {
  return characters.find(std::string_view(at, static_cast<size_t>(c.length))) != std::string_view::npos;
}

template <typename Strips>
std::string_view strip_where(std::string_view text, StripSides sides, Strips strips) {
  while (sides.left && !text.empty()) {
    const CodePoint c = decode(text.data());
    if (!strips(c, text.data())) break;
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  while (sides.right && !text.empty()) {
    const CodePoint c = decode_before(text.data() + text.size());
    if (!strips(c, text.data() + text.size() - c.length)) break;
    text.remove_suffix(static_cast<size_t>(c.length));
  }
  return text;
}

}  // namespace

bool is_ascii(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    if ((word & 0x8080808080808080U) != 0) return false;
  }
  for (; i < text.size(); ++i)
    if (static_cast<unsigned char>(text[i]) >= 0x80) return false;
  return true;
}

size_t num_characters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

size_t offset_of(std::string_view text, size_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80 && index-- == 0) break;
  return at;
}

std::string_view characters(std::string_view text, size_t begin, size_t end) {
  if (begin >= end) return {};
  const size_t from = offset_of(text, begin);
  const std::string_view rest = text.substr(from);
  return rest.substr(0, offset_of(rest, end - begin));
}

bool is_blank(uint32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t leading_blanks(std::string_view text) {
  return text.size() - stripped(text, {.left = true, .right = false}).size();
}

std::string_view stripped(std::string_view text, StripSides sides) {
  return strip_where(text, sides, [](CodePoint c, const char*) { return is_blank(c.value); });
}

std::string_view stripped(std::string_view text, std::string_view characters, StripSides sides) {
  return strip_where(text, sides,
                     [characters](CodePoint c, const char* at) { return contains(characters, c, at); });
}

size_t find_first(std::string_view text, std::string_view wanted) {
  if (wanted.empty()) return 0;
  const void* found = text.empty() ? nullptr : memmem(text.data(), text.size(), wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t search_steps(std::string_view text, std::string_view wanted) {
  // Searches compare up to some hundred bytes at a place before they skip by tables.
  return (wanted.size() > text.size() ? 0 : text.size() * (wanted.size() > 8 ? 4 : 2) + wanted.size()) / 16;
}

size_t strip_steps(std::string_view text, std::string_view characters) {
  return text.size() * (1 + characters.size() / 16) / 4;
}

bool append_in_case(std::string_view text, Case which, std::string& out) {
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode(text.data() + at);
    const bool first = which == Case::kCapitalize ? at == 0 : !in_word;
    const bool raised = which == Case::kUpper || (which != Case::kLower && first);
    if (raised ? !append_upper(c.value, which != Case::kUpper, out) : !append_lower(c.value, out))
      return false;
    if (which == Case::kTitle) in_word = is_cased(c.value);
    at += static_cast<size_t>(c.length);
  }
  return true;
}

std::string_view next_line(std::string_view text, size_t& at) {
  const size_t begin = at;
  while (at < text.size()) {
    const CodePoint c = decode(text.data() + at);
    const bool ends = (c.value >= 10 && c.value <= 13) || (c.value >= 28 && c.value <= 30) ||
                      c.value == 0x85 || c.value == 0x2028 || c.value == 0x2029;
    const size_t end = at;
    at += static_cast<size_t>(c.length);
    if (!ends) continue;
    if (c.value == '\r' && at < text.size() && text[at] == '\n') ++at;
    return text.substr(begin, end - begin);
  }
  return text.substr(begin);
}

void append_float(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  char buffer[40];
  const auto shortest = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view scientific(buffer, static_cast<size_t>(shortest.ptr - buffer));
  int exponent = 0;
  const size_t e = scientific.find('e');
  const char* digits = scientific.data() + e + 1 + (scientific[e + 1] == '+' ? 1 : 0);
  std::from_chars(digits, scientific.data() + scientific.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    out += scientific;
    return;
  }
  char plain[40];
  const auto fixed = std::to_chars(plain, plain + sizeof plain, value, std::chars_format::fixed);
  const std::string_view text(plain, static_cast<size_t>(fixed.ptr - plain));
  out += text;
  if (text.find('.') == std::string_view::npos) out += ".0";
}

void append_quoted(std::string_view text, std::string& out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.push_back(quote);
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode(text.data() + at);
    const std::string_view spelled = text.substr(at, static_cast<size_t>(c.length));
    at += spelled.size();
    if (c.value == '\n')
      out += "\\n";
    else if (c.value == '\r')
      out += "\\r";
    else if (c.value == '\t')
      out += "\\t";
    else if (c.value == '\\' || c.value == static_cast<unsigned char>(quote))
      out.append(1, '\\').append(spelled);
    else if (c.value < 0x80 ? c.value >= 0x20 && c.value != 0x7F : is_printable(c.value))
      out += spelled;
    else if (c.value < 0x100)
      out += fmt::format("\\x{:02x}", c.value);
    else if (c.value < 0x10000)
      out += fmt::format("\\u{:04x}", c.value);
    else
      out += fmt::format("\\U{:08x}", c.value);
  }
  out.push_back(quote);
}

void append_json_string(std::string_view text, bool ascii_only, std::string& out) {
  out.push_back('"');
  size_t written = 0;
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\' && (byte < 0x7F || !ascii_only)) {
      ++at;
      continue;
    }
    out.append(text, written, at - written);
    const CodePoint c = decode(text.data() + at);
    at += static_cast<size_t>(c.length);
    written = at;
    constexpr std::string_view kNamed = "\"\"\\\\\nn\rr\tt\bb\ff";
    size_t named = 0;
    while (named < kNamed.size() && static_cast<unsigned char>(kNamed[named]) != c.value) named += 2;
    if (named < kNamed.size())
      out.append(1, '\\').push_back(kNamed[named + 1]);
    else if (c.value < 0x10000)
      out += fmt::format("\\u{:04x}", c.value);
    else
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c.value - 0x10000) >> 10),
                         0xDC00 + ((c.value - 0x10000) & 0x3FF));
  }
  out.append(text, written);
  out.push_back('"');
}

}  // namespace plimsoll::templates
