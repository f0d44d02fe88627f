// Two ways to place items greedily. Both are exact about what they claim (lowest gap, least feasible offset)
// and neither lists pairs of overlapping items: 18,692 buffers have tens of millions of those.
#include "memory/greedy.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

namespace plimsoll::memory {

namespace {

size_t index(int32_t i) { return static_cast<size_t>(i); }

/// A height and a section that has it.
struct Peak {
  int64_t height = 0;
  int32_t section = 0;
};
const Peak& higher(const Peak& a, const Peak& b) { return b.height > a.height ? b : a; }

/// The tops of the sections and the items not yet placed, as a tree over sections.
/// Each item waits at one section that keeps it from lying lower. When that section's top rises, all that
/// wait there rise with it and none is touched: thousands of activations that share the peak, thousands of
/// transients above them, cost O(log sections) a placement.
class Skyline {
 public:
  explicit Skyline(int32_t num_sections) : ranks_(index(num_sections)) {
    while (leaves_ < num_sections) leaves_ *= 2;
    nodes_.resize(index(2 * leaves_));
  }

  Peak max(int32_t first, int32_t last) const { return query(1, 0, leaves_, first, last); }
  void raise(int32_t first, int32_t last, int64_t height) { update(1, 0, leaves_, first, last, height); }

  void wait(int32_t rank, int32_t section) {
    auto& ranks = ranks_[index(section)];
    ranks.push_back(rank);
    std::push_heap(ranks.begin(), ranks.end(), std::greater<>());
    refresh(1, 0, leaves_, section);
  }

  /// The waiting item that may lie lowest, ties by rank; at which section; kNone when none waits.
  int32_t next_rank() const { return nodes_[1].lowest_rank; }
  int64_t next_height() const { return nodes_[1].lowest; }
  void pop(int32_t section) {
    auto& ranks = ranks_[index(section)];
    std::pop_heap(ranks.begin(), ranks.end(), std::greater<>());
    ranks.pop_back();
    refresh(1, 0, leaves_, section);
  }

  static constexpr int32_t kNone = std::numeric_limits<int32_t>::max();

 private:
  struct Node {
    Peak max;
    int64_t assigned = -1;  ///< a height that holds for the whole range and is not yet in the children
    int64_t lowest = std::numeric_limits<int64_t>::max();  ///< least top among sections where an item waits
    int32_t lowest_rank = kNone;                           ///< the first item that waits at that top
    int32_t first_rank = kNone;                            ///< the first item that waits at all
  };

  static void set(Node& node, int32_t section, int64_t height) {
    node.max = {height, section};
    node.assigned = height;
    node.lowest = node.first_rank == kNone ? std::numeric_limits<int64_t>::max() : height;
    node.lowest_rank = node.first_rank;
  }

  void push_down(int32_t node, int32_t low, int32_t middle) {
    int64_t& assigned = nodes_[index(node)].assigned;
    if (assigned < 0) return;
    set(nodes_[index(2 * node)], low, assigned);
    set(nodes_[index(2 * node + 1)], middle, assigned);
    assigned = -1;
  }

  void pull_up(int32_t node) {
    const Node& a = nodes_[index(2 * node)];
    const Node& b = nodes_[index(2 * node + 1)];
    Node& both = nodes_[index(node)];
    both.max = higher(a.max, b.max);
    std::tie(both.lowest, both.lowest_rank) =
        std::min(std::tie(a.lowest, a.lowest_rank), std::tie(b.lowest, b.lowest_rank));
    both.first_rank = std::min(a.first_rank, b.first_rank);
  }

  Peak query(int32_t node, int32_t low, int32_t high, int32_t first, int32_t last) const {
    if (last <= low || high <= first) return {-1, low};
    const Node& here = nodes_[index(node)];
    if (here.assigned >= 0) return {here.assigned, std::max(low, first)};
    if (first <= low && high <= last) return here.max;
    const int32_t middle = (low + high) / 2;
    return higher(query(2 * node, low, middle, first, last), query(2 * node + 1, middle, high, first, last));
  }

  void update(int32_t node, int32_t low, int32_t high, int32_t first, int32_t last, int64_t height) {
    if (last <= low || high <= first) return;
    if (first <= low && high <= last) {
      set(nodes_[index(node)], low, height);
      if (high - low == 1) nodes_[index(node)].assigned = -1;
      return;
    }
    const int32_t middle = (low + high) / 2;
    push_down(node, low, middle);
    update(2 * node, low, middle, first, last, height);
    update(2 * node + 1, middle, high, first, last, height);
    pull_up(node);
  }

  /// Brings the path to `section` up to date with who waits there.
  void refresh(int32_t node, int32_t low, int32_t high, int32_t section) {
    if (high - low == 1) {
      Node& leaf = nodes_[index(node)];
      const auto& ranks = ranks_[index(section)];
      leaf.first_rank = ranks.empty() ? kNone : ranks.front();
      set(leaf, section, leaf.max.height);
      leaf.assigned = -1;
      return;
    }
    const int32_t middle = (low + high) / 2;
    push_down(node, low, middle);
    if (section < middle)
      refresh(2 * node, low, middle, section);
    else
      refresh(2 * node + 1, middle, high, section);
    pull_up(node);
  }

  int32_t leaves_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::vector<int32_t>> ranks_;  ///< per section a heap of those that wait there, least first
};

/// Placed items in the order of their offsets, in runs with a summary each, so that insertion moves little
/// and a search for a gap skips runs that live at other times.
class PlacedList {
 public:
  /// The lowest offset at which `item` fits among the placed ones.
  int64_t lowest_gap(const Item& item) const {
    int64_t offset = 0;
    for (const Run& run : runs_) {
      if (item.last <= run.first || run.last <= item.first || run.top <= offset) continue;
      if (run.entries.front().offset >= offset + item.size) break;
      for (const Entry& e : run.entries) {
        if (e.last <= item.first || item.last <= e.first || e.top <= offset) continue;
        if (e.offset >= offset + item.size) return offset;
        offset = align_up(e.top, item.alignment);
      }
    }
    return offset;
  }

  void insert(const Item& item, int64_t offset) {
    const Entry entry{offset, offset + item.size, item.first, item.last};
    if (runs_.empty()) runs_.emplace_back();
    const auto after = std::partition_point(
        runs_.begin() + 1, runs_.end(), [&](const Run& run) { return run.entries.front().offset <= offset; });
    Run& run = *std::prev(after);
    const auto at = std::partition_point(run.entries.begin(), run.entries.end(),
                                         [&](const Entry& e) { return e.offset <= offset; });
    run.entries.insert(at, entry);
    run.widen(entry);
    if (run.entries.size() > kRunLength) split(static_cast<size_t>(&run - runs_.data()));
  }

 private:
  // Long enough that runs are few, short enough that an insertion stays within a few cache lines' worth of
  // moves.
  static constexpr size_t kRunLength = 128;

  struct Entry {
    int64_t offset = 0;
    int64_t top = 0;
    int32_t first = 0;
    int32_t last = 0;
  };
  struct Run {
    std::vector<Entry> entries;
    int32_t first = std::numeric_limits<int32_t>::max();
    int32_t last = 0;
    int64_t top = 0;
    void widen(const Entry& e) {
      first = std::min(first, e.first);
      last = std::max(last, e.last);
      top = std::max(top, e.top);
    }
  };

  void split(size_t at) {
    Run upper;
    Run& old = runs_[at];
    const auto middle = old.entries.begin() + static_cast<std::ptrdiff_t>(old.entries.size() / 2);
    upper.entries.assign(middle, old.entries.end());
    Run lower;
    lower.entries.assign(old.entries.begin(), middle);
    for (const Entry& e : upper.entries) upper.widen(e);
    for (const Entry& e : lower.entries) lower.widen(e);
    old = std::move(lower);
    runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(upper));
  }

  std::vector<Run> runs_;
};

/// Placed lists over windows of time: an item is looked up in the shortest window that holds all of it, so
/// one that lives briefly meets only what lives about then.
///
///   level 0   |───────────────────────────────|      windows of a level overlap by half: an item no longer
///   than level 1   |───────────────|───────────────|      half a window lies within one of them
///                     |───────────────|
class PlacedIndex {
 public:
  explicit PlacedIndex(const Problem& problem) {
    const int32_t sections = problem.num_sections();
    levels_.push_back({sections, std::vector<PlacedList>(1)});
    // Below some hundred items a window the list is as fast as its index.
    int32_t stride = sections;
    for (size_t n = problem.items.size(); n > 256 && stride > 4 && levels_.size() < 7; n /= 2) {
      stride = (stride + 1) / 2;
      levels_.push_back({stride, std::vector<PlacedList>(index(sections / stride + 1))});
    }
  }

  int64_t lowest_gap(const Item& item) const {
    for (size_t k = levels_.size() - 1; k > 0; --k) {
      const int32_t at = item.first / levels_[k].stride;
      if (item.last <= (at + 2) * levels_[k].stride) return levels_[k].windows[index(at)].lowest_gap(item);
    }
    return levels_.front().windows.front().lowest_gap(item);
  }

  void insert(const Item& item, int64_t offset) {
    levels_.front().windows.front().insert(item, offset);
    for (size_t k = 1; k < levels_.size(); ++k) {
      Level& level = levels_[k];  // window w holds sections [w, w + 2) * stride
      for (int32_t w = std::max(item.first / level.stride - 1, 0); w * level.stride < item.last; ++w)
        level.windows[index(w)].insert(item, offset);
    }
  }

 private:
  struct Level {
    int32_t stride = 0;
    std::vector<PlacedList> windows;
  };
  std::vector<Level> levels_;
};

/// The section of largest load within each item's, by a sparse table.
std::vector<int32_t> peak_sections(const Problem& problem) {
  const auto& load = problem.load;
  const auto busier = [&](int32_t a, int32_t b) { return load[index(b)] > load[index(a)] ? b : a; };
  std::vector<std::vector<int32_t>> table(1, std::vector<int32_t>(load.size()));
  std::iota(table[0].begin(), table[0].end(), 0);
  for (size_t width = 1; 2 * width <= load.size(); width *= 2) {
    const auto& half = table.back();
    std::vector<int32_t> whole(load.size() - 2 * width + 1);
    for (size_t s = 0; s < whole.size(); ++s) whole[s] = busier(half[s], half[s + width]);
    table.push_back(std::move(whole));
  }
  std::vector<int32_t> peak;
  peak.reserve(problem.items.size());
  for (const Item& item : problem.items) {
    const auto level = static_cast<size_t>(std::bit_width(static_cast<uint32_t>(item.last - item.first)) - 1);
    const auto& row = table[level];
    peak.push_back(busier(row[index(item.first)], row[index(item.last) - (size_t{1} << level)]));
  }
  return peak;
}

double key_of(const Item& item, int64_t load, Key key) {
  const double lifetime = item.lifetime;
  switch (key) {
    case Key::kLoad:
      return static_cast<double>(load);
    case Key::kLifetime:
      return lifetime;
    case Key::kArea:
      return lifetime * static_cast<double>(item.size);
    case Key::kSize:
      return static_cast<double>(item.size);
    case Key::kEarly:
      return -item.first;
    case Key::kLate:
      return item.last;
  }
  return 0;
}

std::vector<int32_t> order_of(std::span<const int32_t> rank) {
  std::vector<int32_t> order(rank.size());
  for (size_t i = 0; i < rank.size(); ++i) order[index(rank[i])] = static_cast<int32_t>(i);
  return order;
}

}  // namespace

std::vector<int32_t> rank_by(const Problem& problem, std::span<const Key> keys) {
  const size_t n = problem.items.size();
  const std::vector<int32_t> peaks = peak_sections(problem);
  std::vector<double> values(n * keys.size());
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < keys.size(); ++k)
      values[i * keys.size() + k] = key_of(problem.items[i], problem.load[index(peaks[i])], keys[k]);
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const double* x = &values[index(a) * keys.size()];
    const double* y = &values[index(b) * keys.size()];
    for (size_t k = 0; k < keys.size(); ++k)
      if (x[k] != y[k]) return x[k] > y[k];
    return a < b;
  });
  std::vector<int32_t> rank(n);
  for (size_t i = 0; i < n; ++i) rank[index(order[i])] = static_cast<int32_t>(i);
  return rank;
}

Packing first_fit(const Problem& problem, std::span<const int32_t> rank) {
  Packing packing;
  packing.offsets.resize(problem.items.size());
  PlacedIndex placed(problem);
  for (const int32_t i : order_of(rank)) {
    const Item& item = problem.items[index(i)];
    const int64_t offset = placed.lowest_gap(item);
    placed.insert(item, offset);
    packing.offsets[index(i)] = offset;
    packing.height = std::max(packing.height, offset + item.size);
  }
  return packing;
}

Packing skyline(const Problem& problem, std::span<const int32_t> rank) {
  Packing packing;
  packing.offsets.resize(problem.items.size());
  const std::vector<int32_t> order = order_of(rank);
  const std::vector<int32_t> peaks = peak_sections(problem);
  std::vector<int32_t> waits_at(rank.size());
  Skyline tops(problem.num_sections());
  const auto wait = [&](int32_t r, int32_t section) {
    waits_at[index(r)] = section;
    tops.wait(r, section);
  };
  for (size_t i = 0; i < rank.size(); ++i) wait(rank[i], peaks[i]);
  while (tops.next_rank() != Skyline::kNone) {
    const int32_t r = tops.next_rank();
    const int32_t i = order[index(r)];
    const Item& item = problem.items[index(i)];
    const int64_t height = tops.next_height();
    tops.pop(waits_at[index(r)]);
    const Peak top = tops.max(item.first, item.last);
    if (top.height > height) {
      const int32_t peak = peaks[index(i)];
      wait(r, tops.max(peak, peak + 1).height == top.height ? peak : top.section);
      continue;
    }
    const int64_t offset = align_up(height, item.alignment);
    tops.raise(item.first, item.last, offset + item.size);
    packing.offsets[index(i)] = offset;
    packing.height = std::max(packing.height, offset + item.size);
  }
  return packing;
}

}  // namespace plimsoll::memory
