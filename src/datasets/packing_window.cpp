#include "datasets/packing_window.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace plimsoll::datasets::packing {

NumberSet::NumberSet(int64_t largest) {
  auto words = static_cast<size_t>(largest) / 64 + 1;
  levels_.emplace_back(words);
  while (words > 1) {
    words = (words - 1) / 64 + 1;
    levels_.emplace_back(words);
  }
}

void NumberSet::insert(int64_t number) {
  auto at = static_cast<size_t>(number);
  for (std::vector<uint64_t>& level : levels_) {
    level[at / 64] |= uint64_t{1} << (at % 64);
    at /= 64;
  }
}

void NumberSet::erase(int64_t number) {
  auto at = static_cast<size_t>(number);
  for (std::vector<uint64_t>& level : levels_) {
    level[at / 64] &= ~(uint64_t{1} << (at % 64));
    if (level[at / 64] != 0) return;
    at /= 64;
  }
}

int64_t NumberSet::at_least(int64_t number) const {
  auto at = static_cast<size_t>(number);
  size_t level = 0;
  // Up until a word has a bit at or behind the place, then down along first bits.
  for (;; ++level) {
    if (level == levels_.size() || at / 64 >= levels_[level].size()) return -1;
    const uint64_t rest = levels_[level][at / 64] & (~uint64_t{0} << (at % 64));
    if (rest != 0) {
      at = at / 64 * 64 + static_cast<size_t>(std::countr_zero(rest));
      break;
    }
    at = at / 64 + 1;
  }
  while (level-- > 0) at = at * 64 + static_cast<size_t>(std::countr_zero(levels_[level][at]));
  return static_cast<int64_t>(at);
}

BestFit::BestFit(int64_t capacity)
    : capacity_(capacity), rooms_(capacity), head_(static_cast<size_t>(capacity) + 1, -1) {}

void BestFit::push(int64_t room, int32_t bin) {
  int32_t& head = head_[static_cast<size_t>(room)];
  next_[static_cast<size_t>(bin)] = head;
  if (head < 0) rooms_.insert(room);
  head = bin;
}

int32_t BestFit::pop(int64_t room) {
  int32_t& head = head_[static_cast<size_t>(room)];
  const int32_t bin = head;
  head = next_[static_cast<size_t>(bin)];
  if (head < 0) rooms_.erase(room);
  return bin;
}

void BestFit::place(int32_t piece, int32_t length, std::span<int32_t> bin_of) {
  PLIMSOLL_CHECK(length > 0 && length <= capacity_, "a piece that fits no sequence");
  int64_t room = rooms_.at_least(length);
  int32_t bin = 0;
  if (room >= 0) {
    bin = pop(room);
  } else {
    room = capacity_;
    bin = static_cast<int32_t>(next_.size());
    next_.push_back(-1);
  }
  bin_of[static_cast<size_t>(piece)] = bin;
  if (room > length) push(room - length, bin);
}

int32_t BestFit::pack(std::span<const int32_t> lengths, std::span<int32_t> bin_of) {
  order_.clear();
  for (size_t i = 0; i < lengths.size(); ++i)
    order_.push_back(static_cast<uint64_t>(capacity_ - lengths[i]) << 32 | i);
  std::sort(order_.begin(), order_.end());
  next_.clear();
  for (const uint64_t key : order_) {
    const auto piece = static_cast<uint32_t>(key);
    place(static_cast<int32_t>(piece), lengths[piece], bin_of);
  }
  for (int64_t room = rooms_.at_least(0); room >= 0; room = rooms_.at_least(room)) {
    head_[static_cast<size_t>(room)] = -1;
    rooms_.erase(room);
  }
  // Numbered as the pieces meet them.
  number_.assign(next_.size(), -1);
  int32_t count = 0;
  for (int32_t& bin : bin_of.first(lengths.size())) {
    int32_t& number = number_[static_cast<size_t>(bin)];
    if (number < 0) number = count++;
    bin = number;
  }
  return count;
}

}  // namespace plimsoll::datasets::packing
