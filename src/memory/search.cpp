// Depth first, one decision a node: which item lies at the floor of one section?
//
// The floors form a skyline. Take a section where every item that fits at its floor also lies at that floor
// over all of its life (a valley). In any packing that is settled (no item can fall), either exactly one of
// those items lies at this section's floor, or none does and the section wastes what is below the next
// possible offset. These cases exclude each other, so a sub-problem is known by its items and floors alone:
// one that failed is remembered. Choosing the section with the fewest cases leaves few guesses in tight
// packings. Sub-problems that share no item to be placed are solved one by one: a failure of one fails the
// node. Equal items are placed in the order of their index.
#include "memory/search.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "memory/random.h"
#include "memory/search_state.h"

namespace plimsoll::memory {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// Looking at so many members counts as a node more; a node of a case with 200 buffers looks at about as many.
constexpr int64_t kWorkPerNode = 1024;
// Keeps the recursion within half of a usual stack even in sanitizer builds; a search this deep finds nothing
// anyway.
constexpr int32_t kMaxDepth = 4000;

/// log2 up to 9 %, monotone, and the same bits on every machine, which libm's is not.
double log2_of(int64_t x) {
  const auto n = static_cast<uint64_t>(x);
  const int exponent = static_cast<int>(std::bit_width(n)) - 1;
  return exponent + static_cast<double>(n) / static_cast<double>(uint64_t{1} << exponent) - 1;
}

/// Sub-problems that failed, by hash; a newcomer replaces what is in its place.
class FailedSet {
 public:
  explicit FailedSet(int64_t max_nodes) {
    size_t slots = 1024;
    while (slots < (size_t{1} << 20) && static_cast<int64_t>(slots) < 2 * max_nodes) slots *= 2;
    slots_.assign(slots, 0);
  }
  [[nodiscard]] bool contains(uint64_t key) const { return slots_[key & (slots_.size() - 1)] == key; }
  void insert(uint64_t key) { slots_[key & (slots_.size() - 1)] = key; }

 private:
  std::vector<uint64_t> slots_;
};

class Search {
 public:
  Search(const Problem& problem, int64_t capacity, int64_t max_nodes, const Strategy& strategy,
         const std::atomic<bool>* cancelled)
      : state_(problem, capacity),
        max_nodes_(max_nodes),
        strategy_(strategy),
        cancelled_(cancelled),
        failed_(max_nodes) {
    rank_items(problem);
  }

  SearchResult run() {
    SearchResult result;
    scanned_ = state_.num_members();  // setting up is work too
    const int32_t sections = state_.problem().num_sections();
    const bool found = state_.start() && solve_parts(0, sections);
    result.outcome = found ? Outcome::kFound : out_of_nodes_ ? Outcome::kOutOfNodes : Outcome::kImpossible;
    result.nodes = nodes();
    if (!found) return result;
    result.packing.offsets = state_.offsets();
    for (size_t i = 0; i < state_.problem().items.size(); ++i)
      result.packing.height =
          std::max(result.packing.height, result.packing.offsets[i] + state_.problem().items[i].size);
    return result;
  }

 private:
  /// The cases at one section.
  struct Choice {
    int32_t section = -1;
    int64_t waste_to = kNever;   ///< where the next item can lie if none lies at the floor; kNever: too high
    std::vector<int32_t> items;  ///< that may lie at the floor
  };

  void rank_items(const Problem& problem);
  [[nodiscard]] int64_t nodes() const { return nodes_ + (state_.work() + scanned_) / kWorkPerNode; }
  bool solve_parts(int32_t first, int32_t last);
  bool solve(int32_t first, int32_t last);
  bool branch(const Choice& choice, int32_t first, int32_t last);
  int64_t most_cases(int64_t floor, const std::pair<int64_t, int64_t>& best) const;
  Choice choose(int32_t first, int32_t last);
  bool collect(int32_t s, int32_t low, int32_t high, int64_t limit, std::vector<int32_t>& items);
  int64_t next_offset(int32_t s, const std::vector<int32_t>& items);
  void order(Choice& choice, int32_t first, int32_t last) const;

  SearchState state_;
  int64_t max_nodes_;
  Strategy strategy_;
  const std::atomic<bool>* cancelled_;
  FailedSet failed_;
  std::vector<int32_t> rank_;     ///< item -> place in the order of values
  std::vector<int32_t> scratch_;  ///< items of the section under examination
  int64_t nodes_ = 0;
  int64_t scanned_ = 0;  ///< members looked at in choosing
  int32_t depth_ = 0;
  bool out_of_nodes_ = false;
};

void Search::rank_items(const Problem& problem) {
  std::vector<double> value(problem.items.size());
  Random random(strategy_.seed);
  for (size_t i = 0; i < value.size(); ++i) {
    const Item& item = problem.items[i];
    value[i] = strategy_.lifetime_power * log2_of(item.last - item.first) +
               strategy_.size_power * log2_of(item.size) + strategy_.noise * random.next();
  }
  std::vector<int32_t> by_value(value.size());
  std::iota(by_value.begin(), by_value.end(), 0);
  std::stable_sort(by_value.begin(), by_value.end(),
                   [&](int32_t a, int32_t b) { return value[at(a)] > value[at(b)]; });
  rank_.resize(value.size());
  for (size_t i = 0; i < by_value.size(); ++i) rank_[at(by_value[i])] = static_cast<int32_t>(i);
}

bool Search::solve_parts(int32_t first, int32_t last) {
  for (int32_t s = first; s < last;) {
    int32_t end = s + 1;
    while (end < last && state_.joined(end - 1)) ++end;
    if (state_.remaining(s) > 0 && !solve(s, end)) return false;
    s = end;
  }
  return true;
}

bool Search::solve(int32_t first, int32_t last) {
  ++nodes_;
  if (nodes() > max_nodes_ || depth_ == kMaxDepth || (cancelled_ != nullptr && *cancelled_)) {
    out_of_nodes_ = true;
    return false;
  }
  scanned_ += 16 * (last - first);  // hashing, choosing and splitting skip the sections
  const uint64_t key = state_.hash(first, last);
  if (failed_.contains(key)) return false;
  ++depth_;
  const bool found = branch(choose(first, last), first, last);
  --depth_;
  if (!found && !out_of_nodes_) failed_.insert(key);
  return found;
}

bool Search::branch(const Choice& choice, int32_t first, int32_t last) {
  const size_t mark = state_.mark();
  for (const int32_t i : choice.items) {
    if (state_.place(i) && solve_parts(first, last)) return true;
    state_.undo(mark);
    if (out_of_nodes_) return false;
  }
  if (choice.waste_to == kNever) return false;
  if (state_.raise(choice.section, choice.waste_to) && solve_parts(first, last)) return true;
  state_.undo(mark);
  return false;
}

/// Collects the items that may lie at the floor of s, whose valley is [low, high); false if s is no place to
/// branch: an item reaches out of the valley, or there are more than `limit`.
bool Search::collect(int32_t s, int32_t low, int32_t high, int64_t limit, std::vector<int32_t>& items) {
  items.clear();
  const int64_t floor = state_.floor(s);
  const auto members = state_.members(s);
  scanned_ += static_cast<int64_t>(members.size());
  for (const int32_t i : members) {
    if (state_.least(i) != floor) continue;
    const Item& item = state_.item(i);
    if (item.first < low || item.last > high) return false;
    const auto twin = std::find_if(items.begin(), items.end(), [&](int32_t j) {
      const Item& other = state_.item(j);
      return other.first == item.first && other.last == item.last && other.size == item.size &&
             other.alignment == item.alignment;
    });
    if (twin != items.end()) {
      *twin = std::min(*twin, i);
      continue;
    }
    if (std::cmp_equal(items.size(), limit)) return false;
    items.push_back(i);
  }
  return true;
}

/// A bound from below on the offset of what lies lowest in s if none of `items` lies at the floor: it rests
/// on an item that is yet to be placed beside s, or it is one that cannot lie at the floor anyway.
int64_t Search::next_offset(int32_t s, const std::vector<int32_t>& items) {
  const int64_t floor = state_.floor(s);
  int64_t next = kNever;
  for (const int32_t i : state_.members(s))
    if (state_.least(i) > floor) next = std::min(next, state_.least(i));
  int32_t low = s;
  int32_t high = s + 1;
  for (const int32_t i : items) {
    low = std::min(low, state_.item(i).first);
    high = std::max(high, state_.item(i).last);
  }
  for (int32_t t = low; t < high; ++t) {
    const auto members = state_.members(t);
    scanned_ += static_cast<int64_t>(members.size());
    for (const int32_t i : members) {
      const Item& item = state_.item(i);
      if (item.first <= s && s < item.last) continue;
      next = std::min(next, state_.least(i) + item.size);
    }
  }
  return next;
}

/// How many cases a section at `floor` may have and still beat `best`, the key of the choice so far.
int64_t Search::most_cases(int64_t floor, const std::pair<int64_t, int64_t>& best) const {
  if (strategy_.fewest_first) return floor < best.second ? best.first : best.first - 1;
  return floor < best.first ? kNever : best.second - 1;
}

/// The section to branch on: fewest cases, then lowest floor, or the other way round.
Search::Choice Search::choose(int32_t first, int32_t last) {
  Choice best;
  std::pair<int64_t, int64_t> best_key{kNever, kNever};
  for (int32_t low = first, high = first; low < last; low = high) {
    const int64_t floor = state_.floor(low);
    for (high = low + 1; high < last && state_.floor(high) == floor;) ++high;
    if (!strategy_.fewest_first && floor > best_key.first) continue;
    for (int32_t s = low; s < high; ++s) {
      const int64_t limit = most_cases(floor, best_key);
      if (!collect(s, low, high, limit, scratch_)) continue;
      const int64_t slack = state_.slack(s);
      int64_t waste_to = slack > 0 ? next_offset(s, scratch_) : kNever;
      if (waste_to > floor + slack) waste_to = kNever;
      const int64_t cases = static_cast<int64_t>(scratch_.size()) + (waste_to != kNever);
      const auto key = strategy_.fewest_first ? std::pair(cases, floor) : std::pair(floor, cases);
      if (key >= best_key) continue;
      best_key = key;
      best.section = s;
      best.waste_to = waste_to;
      best.items = scratch_;
      if (cases == 1 && strategy_.fewest_first) return best;  // no guess at all
    }
  }
  order(best, first, last);
  return best;
}

/// Puts the most promising item first.
void Search::order(Choice& choice, int32_t first, int32_t last) const {
  const int64_t floor = state_.floor(choice.section);
  const auto level = [&](int32_t i) {
    if (!strategy_.flush_first) return 0;
    const Item& item = state_.item(i);
    const int64_t top = floor + item.size;
    const auto wall = [&](int32_t s) { return s >= first && s < last ? state_.floor(s) : state_.capacity(); };
    const int64_t left = wall(item.first - 1);
    const int64_t right = wall(item.last);
    return (left == top) + (right == top) + ((left > floor) + (right > floor));
  };
  std::sort(choice.items.begin(), choice.items.end(), [&](int32_t a, int32_t b) {
    const int x = level(a);
    const int y = level(b);
    return x != y ? x > y : rank_[at(a)] < rank_[at(b)];
  });
}

}  // namespace

SearchResult search(const Problem& problem, int64_t capacity, int64_t max_nodes, const Strategy& strategy,
                    const std::atomic<bool>* cancelled) {
  return Search(problem, capacity, max_nodes, strategy, cancelled).run();
}

}  // namespace plimsoll::memory
