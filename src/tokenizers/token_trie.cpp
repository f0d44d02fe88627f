// The table doubles when half full.
#include "tokenizers/token_trie.h"

#include <bit>
#include <utility>

#include "base/check.h"

namespace plimsoll::tokenizers {

TokenTrie::TokenTrie(size_t expected_bytes)
    : slots_(std::bit_ceil(expected_bytes + 16)), mask_(slots_.size() - 1) {}

void TokenTrie::insert(Slot slot) {
  size_t at = slot_of(slot.key);
  while (slots_[at].key != kFree) at = (at + 1) & mask_;
  slots_[at] = slot;
}

void TokenTrie::add(std::string_view token, int32_t id) {
  uint32_t node = kRoot;
  for (const char c : token) {
    const auto byte = static_cast<unsigned char>(c);
    uint32_t next = child(node, byte);
    if (next == kNone) {
      next = static_cast<uint32_t>(ids_.size());
      PLIMSOLL_CHECK(next <= kMostBytes, "a trie too large");
      if (2 * ids_.size() > slots_.size()) {
        const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
        mask_ = slots_.size() - 1;
        for (const Slot& slot : before)
          if (slot.key != kFree) insert(slot);
      }
      insert({key_of(node, byte), next});
      ids_.push_back(-1);
    }
    node = next;
  }
  ids_[node] = id;
}

uint32_t TokenTrie::find(std::string_view text) const {
  uint32_t node = kRoot;
  for (const char c : text) {
    node = child(node, static_cast<unsigned char>(c));
    if (node == kNone) break;
  }
  return node;
}

}  // namespace plimsoll::tokenizers
