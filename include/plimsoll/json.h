// Attributes and settings cross into the library as JSON text. This writes it; nothing here depends on the
// locale.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/config.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {
namespace detail {

template <class Number>
std::string number_text(Number value) {
  char text[40];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

inline std::string json_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) {
      quoted += c;
    } else {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto code = static_cast<unsigned char>(c);
      quoted += std::string("\\u00") + kDigits[code >> 4U] + kDigits[code & 15U];
    }
  }
  return quoted + '"';
}

/// An object, field by field: `Json().set("bias", true).text()`.
class Json {
 public:
  /// `json` is JSON already.
  Json& raw(std::string_view key, std::string_view json) {
    fields_ += fields_.empty() ? "" : ",";
    fields_ += json_quoted(key);
    fields_ += ':';
    fields_ += json;
    return *this;
  }
  Json& set(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  /// JSON has no infinity and no NaN: the library reads them as text and says which setting it does not take.
  Json& set(std::string_view key, double value) {
    return std::isfinite(value) ? raw(key, number_text(value))
                                : set(key, std::string_view(number_text(value)));
  }
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Json& set(std::string_view key, Integer value) {
    return raw(key, number_text(value));
  }
  Json& set(std::string_view key, std::string_view value) { return raw(key, json_quoted(value)); }
  Json& set(std::string_view key, const char* value) { return set(key, std::string_view(value)); }
  Json& set(std::string_view key, std::span<const int64_t> values) {
    std::string list = "[";
    for (const int64_t value : values) list += (list.size() > 1 ? "," : "") + number_text(value);
    return raw(key, list + ']');
  }
  [[nodiscard]] bool empty() const { return fields_.empty(); }
  [[nodiscard]] std::string text() const { return '{' + fields_ + '}'; }

 private:
  std::string fields_;
};

}  // namespace detail
}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
