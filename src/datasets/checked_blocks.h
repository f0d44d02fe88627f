// Tracks the blocks of a file whose checksums were verified since it was opened: a bit each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/units.h"

namespace plimsoll::datasets {

/// Any thread may note and ask; a block that two threads check at once is checked twice.
class CheckedBlocks {
 public:
  CheckedBlocks() = default;
  /// Of blocks [0, count); what lies beyond is never remembered.
  explicit CheckedBlocks(int64_t count)
      : count_(count),
        words_(std::make_unique<std::atomic<uint64_t>[]>(static_cast<size_t>(ceil_div(count, kBits)))) {}

  static int64_t bytes(int64_t count) { return ceil_div(count, kBits) * int64_t{sizeof(uint64_t)}; }
  [[nodiscard]] bool contains(int64_t block) const {
    return block < count_ && (word(block).load(std::memory_order_relaxed) & bit(block)) != 0;
  }
  void add(int64_t block) const {
    if (block < count_) word(block).fetch_or(bit(block), std::memory_order_relaxed);
  }

 private:
  static constexpr int64_t kBits = 64;
  [[nodiscard]] std::atomic<uint64_t>& word(int64_t block) const {
    return words_[static_cast<size_t>(block / kBits)];
  }
  static uint64_t bit(int64_t block) { return uint64_t{1} << (block % kBits); }

  int64_t count_ = 0;
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

}  // namespace plimsoll::datasets
