// Counts the words of a text: an open table over words that are kept once. Short words lie in the
// table's entries, longer ones in blocks behind them, so memory goes with the number of different words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace plimsoll::tokenizer_training {

class WordCounts {
 public:
  WordCounts() : slots_(size_t{1} << 12, 0) {}

  /// Counts a word of at least one byte `times` more.
  void add(std::string_view word, int64_t times = 1);
  void add(const WordCounts& other);

  [[nodiscard]] size_t size() const { return entries_.size(); }
  /// In the order in which they were first met.
  [[nodiscard]] std::string_view word(size_t index) const { return bytes_of(entries_[index]); }
  [[nodiscard]] int64_t count(size_t index) const { return entries_[index].count; }

 private:
  static constexpr size_t kInline = 16;
  static constexpr size_t kBlockBytes = size_t{1} << 18;
  struct Entry {
    int64_t count;
    uint32_t size;
    uint32_t hash;
    char bytes[kInline];  // of a longer word: where it lies
  };
  static std::string_view bytes_of(const Entry& entry) {
    if (entry.size <= kInline) return {entry.bytes, entry.size};
    const char* at = nullptr;
    std::memcpy(&at, entry.bytes, sizeof at);
    return {at, entry.size};
  }
  void add(std::string_view word, uint32_t hash, int64_t times);
  void append(std::string_view word, uint32_t hash, int64_t times);
  void grow();

  std::vector<uint32_t> slots_;  // index + 1 into entries_; 0 is free
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_left_ = 0;
  char* block_at_ = nullptr;
};

}  // namespace plimsoll::tokenizer_training
