// Tracks the bytes of storages that ops have touched, and the last op that did.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "passes/recompute/overwritten.h"

namespace plimsoll::passes {

/// A storage has few ranges: its views, and windows of it.
class TouchedRanges {
 public:
  /// Positions come in order.
  void note(const StorageRange& range, int32_t position) {
    const auto storage = static_cast<size_t>(range.storage);
    if (storage >= by_storage_.size()) by_storage_.resize(storage + 1);
    std::vector<Touched>& list = by_storage_[storage];
    const auto known = std::ranges::find_if(
        list, [&](const Touched& t) { return t.begin == range.begin && t.end == range.end; });
    (known == list.end() ? list.emplace_back() : *known) = {range.begin, range.end, position};
  }
  /// The last position at which any byte of the range was touched; -1: at none.
  [[nodiscard]] int32_t last(const StorageRange& range) const {
    int32_t last = -1;
    const auto storage = static_cast<size_t>(range.storage);
    if (storage >= by_storage_.size()) return last;
    for (const Touched& t : by_storage_[storage])
      if (t.begin < range.end && range.begin < t.end) last = std::max(last, t.position);
    return last;
  }

 private:
  struct Touched {
    int64_t begin = 0, end = 0;
    int32_t position = 0;
  };
  std::vector<std::vector<Touched>> by_storage_;
};

}  // namespace plimsoll::passes
