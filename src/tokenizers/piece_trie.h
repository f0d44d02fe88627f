// Pieces of text as a trie over their characters: one table of (node, character) to what lies behind it, so
// that each step of a walk takes one line of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace plimsoll::tokenizers {

class PieceTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = UINT32_MAX;
  /// Of bytes of all pieces.
  static constexpr size_t kMostBytes = size_t{1} << 28;

  /// What a character leads to.
  struct Step {
    uint32_t node = kNone;  ///< kNone where no piece goes on
    int32_t id = -1;        ///< of the piece that ends here; -1 where none does
  };

  PieceTrie();
  /// A text that is added again takes the later id. Valid UTF-8; all together have at most kMostBytes.
  void add(std::string_view text, int32_t id);
  /// Once all pieces are there: nodes that lead nowhere are left out, first characters get a table of their
  /// own.
  void seal();

  [[nodiscard]] Step step(uint32_t node, uint32_t code_point) const {
    if (node == kRoot && code_point < first_.size()) return first_[code_point];
    const Slot* const slot = find(node, code_point);
    return slot == nullptr ? Step() : slot->step;
  }
  /// Of the piece that the text is; -1 where it is none.
  [[nodiscard]] int32_t id_of(std::string_view text) const;

 private:
  static constexpr uint32_t kMostFirst = 0x10000;
  struct Slot {
    uint32_t node = kNone;  // kNone: free
    uint32_t code_point = 0;
    Step step = {};
  };
  [[nodiscard]] size_t slot_of(uint32_t node, uint32_t code_point) const {
    const uint64_t key = uint64_t{node} << 21 | code_point;
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask_;
  }
  [[nodiscard]] const Slot* find(uint32_t node, uint32_t code_point) const {
    for (size_t at = slot_of(node, code_point);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.node == node && slot.code_point == code_point) return &slot;
      if (slot.node == kNone) return nullptr;
    }
  }
  Slot& insert(const Slot& slot);

  std::vector<Slot> slots_;
  size_t mask_;
  size_t num_slots_ = 0;
  uint32_t num_nodes_ = 1;
  std::vector<Step> first_;  // by code point, from the root
};

}  // namespace plimsoll::tokenizers
