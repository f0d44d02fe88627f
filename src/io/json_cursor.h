// JSON text read token by token, for headers and indices that name thousands of tensors: nothing is built, so
// that hostile text costs no memory beyond its own. The whole documents of people are json.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll::io {

/// A position in a JSON text. Each call skips blanks and consumes what it names, or returns false and keeps
/// the first failure with its place. The text must be valid UTF-8 (see utf8_error_at) and outlive the cursor.
class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  /// Consumes `c` where it comes next; false is no failure.
  bool take(char c);
  /// The same, where its absence is one.
  bool expect(char c);
  /// A string, unescaped. Escapes that are no character (half a surrogate pair) are failures.
  bool string(std::string& value);
  /// A number written as an integer that fits 64 bits ("1.0" and "1e3" are failures).
  bool integer(int64_t& value);
  /// Any value, checked and passed over, nested at most `max_depth` deep.
  bool skip(int max_depth = 64);
  /// Whether only blanks follow; false is no failure.
  bool at_end();

  /// Whatever the caller finds wrong at this place; returns false. The first failure stays.
  bool fail(std::string_view why);
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  void skip_blanks();
  bool character(std::string& value);
  bool hex4(uint32_t& code);
  bool word(std::string_view w);
  bool number();
  bool scalar();
  std::string_view text_;
  size_t at_ = 0;
  std::string error_;
};

/// The byte at which `text` stops being UTF-8; -1 where it is all valid. Overlong forms, surrogates and codes
/// beyond U+10FFFF are invalid.
int64_t utf8_error_at(std::string_view text);

}  // namespace plimsoll::io
