// Reads the JSON that the library writes: the members of one object at a time, without a tree.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "plimsoll/config.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {
namespace detail {

/// Goes through the members of an object: `while (members.next())`, then `key()` and `value()`, both as they
/// stand.
class JsonMembers {
 public:
  explicit JsonMembers(std::string_view object) : text_(object) { skip("{ \n\t"); }

  bool next() {
    skip(", \n\t");
    if (at_ >= text_.size() || text_[at_] != '"') return false;
    const std::string_view quoted = item();
    key_ = quoted.substr(1, quoted.size() - 2);
    skip(": \n\t");
    value_ = item();
    return !value_.empty();
  }
  [[nodiscard]] std::string_view key() const { return key_; }
  [[nodiscard]] std::string_view value() const { return value_; }

 private:
  void skip(std::string_view characters) {
    while (at_ < text_.size() && characters.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  /// One value, whatever is nested in it: to the comma or bracket behind it.
  std::string_view item() {
    const size_t start = at_;
    int depth = 0;
    bool is_quoted = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (is_quoted) {
        if (c == '\\') ++at_;
        if (c == '"') is_quoted = false;
        if (is_quoted || depth > 0) continue;
        if (c == '"') return text_.substr(start, ++at_ - start);
      } else if (c == '"') {
        is_quoted = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) break;
        if (--depth == 0) return text_.substr(start, ++at_ - start);
      } else if (c == ',' && depth == 0) {
        break;
      }
    }
    return text_.substr(start, at_ - start);
  }

  std::string_view text_;
  std::string_view key_;
  std::string_view value_;
  size_t at_ = 0;
};

/// The value at `key`; empty where there is none.
inline std::string_view json_value(std::string_view object, std::string_view key) {
  JsonMembers members(object);
  while (members.next())
    if (members.key() == key) return members.value();
  return {};
}

/// A number as the text of a value has it, `otherwise` where it is none (or null).
template <class Number>
Number json_number(std::string_view value, Number otherwise) {
  Number number = otherwise;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

}  // namespace detail
}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
