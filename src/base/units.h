// Bytes as a type of its own, its printing and its parsing.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll {

/// A number of bytes. Arithmetic keeps the type; `count` is the plain number.
struct Bytes {
  int64_t count = 0;

  constexpr Bytes() = default;
  constexpr explicit Bytes(int64_t n) : count(n) {}
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes operator+(Bytes o) const { return Bytes(count + o.count); }
  constexpr Bytes operator-(Bytes o) const { return Bytes(count - o.count); }
  constexpr Bytes operator*(int64_t n) const { return Bytes(count * n); }
  constexpr Bytes& operator+=(Bytes o) { return count += o.count, *this; }
  constexpr Bytes& operator-=(Bytes o) { return count -= o.count, *this; }
};

constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes(static_cast<int64_t>(n) << 10); }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes(static_cast<int64_t>(n) << 20); }
constexpr Bytes operator""_GiB(unsigned long long n) { return Bytes(static_cast<int64_t>(n) << 30); }

/// `n` rounded up to a multiple of `alignment` (a positive number).
constexpr int64_t round_up(int64_t n, int64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}
constexpr int64_t ceil_div(int64_t n, int64_t d) { return (n + d - 1) / d; }

/// "1.50 GiB", "12.0 MiB", "512 B".
std::string to_string(Bytes bytes);
/// Reads "6GiB", "512 MiB", "1.5GB", "1000": binary and decimal units, case-insensitive.
/// Errors: kInvalidArgument for anything else, negative or beyond 2^62.
Result<Bytes> parse_bytes(std::string_view text);

}  // namespace plimsoll
