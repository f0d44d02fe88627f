// A place in a text, with what the parser of programs asks of it: words, numbers, quoted texts, and errors
// that say where.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::ir {

inline bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
inline bool is_layer(char c) { return is_word(c) || c == '.' || c == '-' || c == '/'; }
inline bool is_number(char c) {
  return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

/// The text and a place in it.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] bool done() const { return position_ >= text_.size(); }
  /// The next character behind blanks; '\n' at a line's end and at the text's.
  char peek() {
    while (!done() && (text_[position_] == ' ' || text_[position_] == '\t' || text_[position_] == '\r'))
      ++position_;
    return done() ? '\n' : text_[position_];
  }
  bool take(char c) {
    if (peek() != c || done()) return false;
    ++position_;
    return true;
  }
  Status expect(char c) {
    if (take(c)) return Ok{};
    return error(fmt::format("expected '{}'", c));
  }
  /// The longest run of characters that `accept` takes; perhaps empty.
  std::string_view run(bool (*accept)(char)) {
    peek();
    const size_t start = position_;
    while (!done() && accept(text_[position_])) ++position_;
    return text_.substr(start, position_ - start);
  }
  Result<std::string_view> word(std::string_view what) {
    const std::string_view word = run(is_word);
    if (word.empty()) return error(fmt::format("expected {}", what));
    return word;
  }
  Result<std::string> quoted();
  /// An integer in [0, limit].
  Result<int64_t> count(std::string_view what, int64_t limit);

  void next_line() {
    while (!done() && text_[position_] != '\n') ++position_;
    if (!done()) ++position_;
    ++line_;
    line_start_ = position_;
  }
  [[nodiscard]] bool at_comment() {
    peek();
    return text_.substr(position_, 2) == "//";
  }
  /// `what` at this place.
  [[nodiscard]] Error error(std::string what) const { return {ErrorCode::kBadData, std::move(what), here()}; }
  [[nodiscard]] std::string here() const { return fmt::format("{}:{}", line_, position_ - line_start_ + 1); }

 private:
  std::string_view text_;
  size_t position_ = 0, line_ = 1, line_start_ = 0;
};

}  // namespace plimsoll::ir
