#include "io/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace plimsoll::io {

struct Checksum::State {
  XXH3_state_t* state = XXH3_createState();  // aligned as XXH3 wants it
  State() {
    if (state == nullptr) throw std::bad_alloc();  // as `new` would
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(state); }
};

Checksum::Checksum() : state_(std::make_unique<State>()) { reset(); }
Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::reset() { XXH3_64bits_reset(state_->state); }
void Checksum::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->state, bytes.data(), bytes.size());
}
uint64_t Checksum::value() const { return XXH3_64bits_digest(state_->state); }

uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string checksum_text(uint64_t value) { return fmt::format("{:016x}", value); }

std::optional<uint64_t> parse_checksum(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return std::nullopt;
    value = value << 4 | static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return value;
}

}  // namespace plimsoll::io
