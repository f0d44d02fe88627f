// The pairs of characters that can be adjacent across a merge. Between two that cannot, no merge ever
// happens, so a long word may be cut there and its parts encoded (and remembered) alone.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll::tokenizers {

class Junctions {
 public:
  /// `expected`: about how many different pairs will be added.
  explicit Junctions(size_t expected = 0);
  void add(uint32_t left, uint32_t right);
  [[nodiscard]] bool has(uint32_t left, uint32_t right) const {
    if (left < kSmall && right < kSmall) return small_[left * kSmall + right];
    const uint64_t key = uint64_t{left} << 32 | right;
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      if (slots_[at] == key) return true;
      if (slots_[at] == kNone) return false;
    }
  }

 private:
  static constexpr uint32_t kSmall = 0x144;  // the characters that stand for bytes lie below
  static constexpr uint64_t kNone = ~uint64_t{0};
  size_t slot_of(uint64_t key) const {
    return static_cast<size_t>(((key ^ key >> 29) * 0x9E3779B97F4A7C15u) >> 32) & mask_;
  }
  void insert(uint64_t key);
  std::bitset<size_t{kSmall} * kSmall> small_;
  std::vector<uint64_t> slots_;
  size_t mask_;
  size_t num_keys_ = 0;
};

}  // namespace plimsoll::tokenizers
