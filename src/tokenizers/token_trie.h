// Tokens as a trie over their bytes: one table of (node, byte) to child.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace plimsoll::tokenizers {

class TokenTrie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = UINT32_MAX;
  /// Of bytes of all tokens: a node's number and a byte fit in 32 bits.
  static constexpr size_t kMostBytes = (size_t{1} << 24) - 2;

  /// `expected_bytes`: about how many bytes the tokens will have.
  explicit TokenTrie(size_t expected_bytes = 0);
  /// All tokens together have at most kMostBytes.
  void add(std::string_view token, int32_t id);
  /// kNone where no token goes on like this.
  [[nodiscard]] uint32_t child(uint32_t node, unsigned char byte) const {
    const uint32_t key = key_of(node, byte);
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return slots_[at].child;
      if (slots_[at].key == kFree) return kNone;
    }
  }
  /// The node of a text, kNone where no token starts with it.
  [[nodiscard]] uint32_t find(std::string_view text) const;
  /// Of the token that ends at the node; -1 where none does.
  [[nodiscard]] int32_t id(uint32_t node) const { return ids_[node]; }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Slot {
    uint32_t key = kFree;
    uint32_t child = 0;
  };
  static uint32_t key_of(uint32_t node, unsigned char byte) { return node << 8 | byte; }
  [[nodiscard]] size_t slot_of(uint32_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask_;
  }
  void insert(Slot slot);

  std::vector<Slot> slots_;
  size_t mask_;
  std::vector<int32_t> ids_{-1};  // by node
};

}  // namespace plimsoll::tokenizers
