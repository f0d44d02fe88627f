// What comes and goes in time goes where an allocator would have it: beside what was placed before all, what
// was born before the item at hand and still lives is all that it meets.
#include <algorithm>
#include <numeric>

#include "memory/greedy.h"

namespace plimsoll::memory {
namespace {

/// What is placed and may still meet somebody, by offset.
class Ledger {
 public:
  explicit Ledger(int64_t limit) : limit_(limit) {}

  /// Where the item goes: the lowest of the gaps that hold it, or of the smallest of them; -1: nowhere.
  int64_t place(const Item& item, bool in_smallest) {
    int64_t best = -1, smallest = 0, top = 0;
    const auto offer = [&](int64_t end) {
      const int64_t offset = align_up(top, item.alignment);
      if (offset + item.size > end || (best >= 0 && (!in_smallest || end - top >= smallest))) return;
      best = offset, smallest = end - top;
    };
    steps_ += static_cast<int64_t>(entries_.size());
    for (const Entry& e : entries_) {
      if (e.last <= item.first || item.last <= e.first) continue;
      if (e.offset > top) offer(e.offset);
      top = std::max(top, e.top);
    }
    offer(limit_);
    if (best < 0) return best;
    const auto at = std::ranges::upper_bound(entries_, best, {}, &Entry::offset);
    entries_.insert(at, {best, best + item.size, item.first, item.last});
    return best;
  }

  [[nodiscard]] int64_t steps() const { return steps_; }

  /// Nobody who is born before that section comes any more.
  void forget_before(int32_t section) {
    std::erase_if(entries_, [&](const Entry& e) { return e.last <= section; });
  }

 private:
  struct Entry {
    int64_t offset = 0, top = 0;
    int32_t first = 0, last = 0;
  };
  int64_t limit_, steps_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace

BestFit best_fit(const Problem& problem, const std::vector<bool>& before, int64_t limit) {
  const auto item = [&](int32_t i) -> const Item& { return problem.items[index(i)]; };
  std::vector<int32_t> order(problem.items.size());
  std::iota(order.begin(), order.end(), 0);
  const auto others =
      std::stable_partition(order.begin(), order.end(), [&](int32_t i) { return before[index(i)]; });
  std::stable_sort(order.begin(), others, [&](int32_t a, int32_t b) {
    return item(a).size != item(b).size ? item(a).size > item(b).size : item(a).last > item(b).last;
  });
  std::stable_sort(others, order.end(), [&](int32_t a, int32_t b) {
    return item(a).first != item(b).first ? item(a).first < item(b).first : item(a).size > item(b).size;
  });
  BestFit result;
  Packing& packing = result.packing;
  packing.offsets.resize(order.size());
  Ledger ledger(limit);
  int32_t now = 0;
  for (auto at = order.begin(); at != order.end() && result.left_over < 0; ++at) {
    const bool is_other = at >= others;
    if (is_other && item(*at).first != now) ledger.forget_before(now = item(*at).first);
    const int64_t offset = ledger.place(item(*at), is_other);
    if (offset < 0) result.left_over = *at;
    packing.offsets[index(*at)] = offset;
    packing.height = std::max(packing.height, offset + item(*at).size);
  }
  packing.steps = ledger.steps();
  return result;
}

}  // namespace plimsoll::memory
