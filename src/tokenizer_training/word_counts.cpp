// Linear probing at most half full; an entry keeps its word's hash, so that growing reads no words.
#include "tokenizer_training/word_counts.h"

#include <xxhash.h>

#include <algorithm>

#include "base/check.h"

namespace plimsoll::tokenizer_training {

void WordCounts::add(std::string_view word, int64_t times) {
  const uint64_t hash = XXH3_64bits(word.data(), word.size());
  add(word, static_cast<uint32_t>(hash ^ hash >> 32), times);
}

void WordCounts::add(const WordCounts& other) {
  for (const Entry& entry : other.entries_) add(bytes_of(entry), entry.hash, entry.count);
}

void WordCounts::add(std::string_view word, uint32_t hash, int64_t times) {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    if (slots_[at] == 0) {
      append(word, hash, times);
      slots_[at] = static_cast<uint32_t>(entries_.size());
      if (2 * entries_.size() > slots_.size()) grow();
      return;
    }
    Entry& entry = entries_[slots_[at] - 1];
    if (entry.hash == hash && entry.size == word.size() &&
        std::memcmp(bytes_of(entry).data(), word.data(), word.size()) == 0) {
      entry.count += times;
      return;
    }
  }
}

void WordCounts::append(std::string_view word, uint32_t hash, int64_t times) {
  PLIMSOLL_CHECK(entries_.size() < UINT32_MAX - 1 && word.size() < UINT32_MAX, "too many words");
  Entry entry{times, static_cast<uint32_t>(word.size()), hash, {}};
  const char* kept = nullptr;
  if (word.size() <= kInline) {
    std::memcpy(entry.bytes, word.data(), word.size());
  } else {
    if (word.size() > block_left_) {
      block_left_ = std::max(word.size(), kBlockBytes);
      blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_left_));
      block_at_ = blocks_.back().get();
    }
    std::memcpy(block_at_, word.data(), word.size());
    kept = block_at_;
    block_at_ += word.size();
    block_left_ -= word.size();
    std::memcpy(entry.bytes, &kept, sizeof kept);
  }
  entries_.push_back(entry);
}

void WordCounts::grow() {
  slots_.assign(2 * slots_.size(), 0);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t at = entries_[i].hash & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<uint32_t>(i + 1);
  }
}

}  // namespace plimsoll::tokenizer_training
