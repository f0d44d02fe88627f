// Best-fit placement in order of allocation: beside what was placed before all, what
// was born before the item at hand and still lives is all that it meets.
#include <algorithm>
#include <array>

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

BestFit best_fit(const Problem& problem, std::vector<bool> before, int64_t limit, int64_t most_tries,
                 int64_t most_steps) {
  const auto sizes = order_of(rank_by(problem, std::array{Key::kSize, Key::kLate}));
  const auto births = order_of(rank_by(problem, std::array{Key::kEarly, Key::kSize}));
  const auto attempt = [&] {
    BestFit result;
    result.packing.offsets.resize(problem.items.size());
    Ledger ledger(limit);
    const auto place = [&](int32_t i, bool in_smallest) {
      const Item& item = problem.items[at(i)];
      const int64_t offset = ledger.place(item, in_smallest);
      if (offset < 0) result.left_over = i;
      result.packing.offsets[at(i)] = offset;
      result.packing.height = std::max(result.packing.height, offset + item.size);
    };
    for (const int32_t i : sizes)
      if (before[at(i)] && result.left_over < 0) place(i, false);
    int32_t now = 0;
    for (const int32_t i : births) {
      if (before[at(i)] || result.left_over >= 0) continue;
      const int32_t first = problem.items[at(i)].first;
      if (first != now) ledger.forget_before(now = first);
      place(i, true);
    }
    result.packing.steps = ledger.steps();
    return result;
  };
  int64_t steps = 0;
  for (int64_t tries = 1;; ++tries) {
    BestFit result = attempt();
    result.packing.steps = steps += result.packing.steps;
    const int32_t left_over = result.left_over;
    if (left_over < 0 || before[at(left_over)] || tries >= most_tries || steps > most_steps) return result;
    before[at(left_over)] = true;
  }
}

}  // namespace plimsoll::memory
