// Numbers for people, and numbers from text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace plimsoll {

/// 134515008 as "134,515,008".
std::string grouped(int64_t number);

/// All of `text` as a decimal number, in any locale; nothing where it is anything else, or beyond the type.
template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace plimsoll
