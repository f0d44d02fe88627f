// An open table that doubles when three quarters full.
#include "tokenizers/piece_trie.h"

#include <algorithm>
#include <utility>

#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {

PieceTrie::PieceTrie() : slots_(1024), mask_(slots_.size() - 1) {}

PieceTrie::Slot& PieceTrie::insert(const Slot& slot) {
  size_t at = slot_of(slot.node, slot.code_point);
  while (slots_[at].node != kNone) at = (at + 1) & mask_;
  slots_[at] = slot;
  return slots_[at];
}

void PieceTrie::add(std::string_view text, int32_t id) {
  uint32_t node = kRoot;
  for (const char* p = text.data(); p < text.data() + text.size();) {
    const CodePoint c = decode(p);
    p += c.length;
    auto* slot = const_cast<Slot*>(find(node, c.value));
    if (slot == nullptr) {
      if (4 * (num_slots_ + 1) > 3 * slots_.size()) {
        const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
        mask_ = slots_.size() - 1;
        for (const Slot& one : before)
          if (one.node != kNone) insert(one);
      }
      slot = &insert({node, c.value, {num_nodes_++, -1}});
      ++num_slots_;
    }
    if (p == text.data() + text.size()) slot->step.id = id;
    node = slot->step.node;
  }
}

void PieceTrie::seal() {
  std::vector<bool> leads_on(num_nodes_);
  uint32_t largest = 0;
  for (const Slot& slot : slots_) {
    if (slot.node == kNone) continue;
    leads_on[slot.node] = true;
    if (slot.node == kRoot && slot.code_point < kMostFirst) largest = std::max(largest, slot.code_point);
  }
  first_.assign(largest + 1, {});
  for (Slot& slot : slots_) {
    if (slot.node == kNone) continue;
    if (!leads_on[slot.step.node]) slot.step.node = kNone;
    if (slot.node == kRoot && slot.code_point < first_.size()) first_[slot.code_point] = slot.step;
  }
}

int32_t PieceTrie::id_of(std::string_view text) const {
  Step at{kRoot, -1};
  for (const char* p = text.data(); p < text.data() + text.size();) {
    if (at.node == kNone) return -1;
    const CodePoint c = decode(p);
    at = step(at.node, c.value);
    p += c.length;
  }
  return at.id;
}

}  // namespace plimsoll::tokenizers
