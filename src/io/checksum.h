// Checksums of what is stored: XXH3, 64 bits. A guard against damage - flipped bits, cut files, mixed-up
// blocks - and not against forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll::io {

/// A checksum over bytes that come in pieces. Moves, does not copy; `reset` starts anew without allocating.
/// Source: https://github.com/Cyan4973/xxHash, XXH3_64bits.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  void reset();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  /// Of everything since the last reset; more may be added afterwards.
  [[nodiscard]] uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The checksum of bytes that lie together.
uint64_t checksum(std::span<const std::byte> bytes);
inline uint64_t checksum(std::string_view text) { return checksum(std::as_bytes(std::span(text))); }

/// 16 hexadecimal digits, lower case.
std::string checksum_text(uint64_t value);
/// Reads them back; nothing for anything else.
std::optional<uint64_t> parse_checksum(std::string_view text);

}  // namespace plimsoll::io
