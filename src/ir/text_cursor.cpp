// See text_cursor.h.
#include "ir/text_cursor.h"

#include <charconv>

namespace plimsoll::ir {

Result<std::string> Cursor::quoted() {
  if (!take('"')) return error("expected '\"'");
  std::string out;
  while (!done() && text_[position_] != '"' && text_[position_] != '\n') {
    char c = text_[position_++];
    if (c == '\\') {
      c = done() ? '\n' : text_[position_++];
      if (c == 'x') {
        unsigned code = 0;
        const std::string_view digits = text_.substr(position_, 2);
        const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (failed != std::errc{} || end != digits.data() + 2)
          return error("expected two hexadecimal digits");
        position_ += 2;
        c = static_cast<char>(code);
      } else if (c != '"' && c != '\\') {
        return error("unknown escape");
      }
    }
    out += c;
  }
  if (done() || text_[position_] != '"') return error("a text is not closed");
  ++position_;
  return out;
}

Result<int64_t> Cursor::count(std::string_view what, int64_t limit) {
  const Error at_start = error(fmt::format("expected {} in 0..{}", what, limit));
  const std::string_view digits = run([](char c) { return c >= '0' && c <= '9'; });
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || failed != std::errc{} || end != digits.data() + digits.size() || value > limit)
    return Error(at_start);
  return value;
}

}  // namespace plimsoll::ir
