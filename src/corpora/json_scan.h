// A line of JSON gone through once, without building anything: where its values stand, and strings on demand.
// Made for hundreds of megabytes a second; whole documents are io/json.h's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::corpora {

/// A position in a text. Each call skips blanks and consumes what it names, or returns false and keeps the
/// first failure with its place. Strings may hold invalid UTF-8 and halves of surrogate pairs. NaN, Infinity
/// and -Infinity pass as numbers, because Python writes them.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  /// Consumes `c` where it comes next; false is no failure.
  bool take(char c);
  /// The same, where its absence is one.
  bool expect(char c);
  /// Any value, checked and passed over: `value` is its text. Nested at most kMaxDepth deep.
  bool value(std::string_view& value);
  /// A string, passed over: `value` is its text with the quotes.
  bool string(std::string_view& value);
  /// Whether only blanks follow; a failure where something else does.
  bool expect_end();

  [[nodiscard]] const std::string& error() const { return error_; }
  /// Where the halves of surrogate pairs that stand alone were seen: the places of their backslashes.
  [[nodiscard]] const std::vector<size_t>& lone_surrogates() const { return lone_surrogates_; }

  static constexpr size_t kMaxDepth = 256;

 private:
  bool fail(std::string_view why);
  void skip_blanks();
  bool word(std::string_view w);
  bool digits();
  bool number();
  bool scalar();
  bool pass_string();
  bool pass_escape();
  std::string_view text_;
  size_t at_ = 0;
  std::string error_;
  std::vector<size_t> lone_surrogates_;
};

/// Appends what a string that was scanned (its text with the quotes) means. A half of a surrogate pair that
/// stands alone becomes U+FFFD.
void append_unescaped(std::string_view string, std::string& out);
/// `text` as a JSON string with quotes. Invalid UTF-8 stays as it is.
void append_quoted(std::string_view text, std::string& out);

}  // namespace plimsoll::corpora
