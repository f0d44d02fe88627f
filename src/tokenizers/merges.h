// The merge loop of byte pair encoding: of all neighbouring symbols the pair with the least rank becomes one
// symbol, the leftmost first, until no pair has a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll::tokenizers {

/// (left, right) -> rank and merged id, an open table with linear probing.
class MergeTable {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  explicit MergeTable(size_t num_merges = 0);
  /// A pair that is set again takes the later rank.
  void set(int32_t left, int32_t right, uint32_t rank, int32_t merged);
  /// rank << 32 | merged id, or kNone.
  [[nodiscard]] uint64_t find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return slots_[at].value;
      if (slots_[at].key == kNone) return kNone;
    }
  }

 private:
  struct Slot {
    uint64_t key = kNone;
    uint64_t value = kNone;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const {
    key = (key ^ key >> 31) * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(key >> 32) & mask_;
  }
  std::vector<Slot> slots_;
  size_t mask_;
};

/// Memory of the merge loop for long words, kept from word to word.
struct MergeScratch {
  std::vector<int32_t> ranks;
  std::vector<uint64_t> least;
  std::vector<int32_t> widths;
};

/// Merges `symbols` in place. O(n^2) with a tiny constant to 64 symbols, O(n log n) beyond, in 9 bytes of
/// scratch a symbol.
void merge_symbols(const MergeTable& merges, std::vector<int32_t>& symbols, MergeScratch& scratch);

}  // namespace plimsoll::tokenizers
