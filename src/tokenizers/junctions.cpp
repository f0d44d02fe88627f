// An open table that doubles when half full.
#include "tokenizers/junctions.h"

#include <algorithm>
#include <bit>

namespace plimsoll::tokenizers {

Junctions::Junctions(size_t expected)
    : slots_(std::bit_ceil(2 * expected + 2), kNone), mask_(slots_.size() - 1) {}

void Junctions::add(uint32_t left, uint32_t right) {
  if (left < kSmall && right < kSmall) {
    small_.set(left * kSmall + right);
    return;
  }
  if (2 * (num_keys_ + 1) > slots_.size()) {
    std::vector<uint64_t> old(2 * slots_.size(), kNone);
    std::swap(old, slots_);
    mask_ = slots_.size() - 1;
    num_keys_ = 0;
    for (const uint64_t key : old)
      if (key != kNone) insert(key);
  }
  insert(uint64_t{left} << 32 | right);
}

void Junctions::insert(uint64_t key) {
  size_t at = slot_of(key);
  while (slots_[at] != kNone && slots_[at] != key) at = (at + 1) & mask_;
  num_keys_ += slots_[at] == kNone;
  slots_[at] = key;
}

}  // namespace plimsoll::tokenizers
