// The skyline fill in O(log sections) a placement: a tree over sections that knows their tops and who waits
// where.
#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>

#include "memory/greedy.h"

namespace plimsoll::memory {

namespace {

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
  explicit Skyline(int32_t num_sections) : ranks_(at(num_sections)) {
    while (leaves_ < num_sections) leaves_ *= 2;
    nodes_.resize(at(2 * leaves_));
  }

  Peak max(int32_t first, int32_t last) const { return query(1, 0, leaves_, first, last); }
  void raise(int32_t first, int32_t last, int64_t height) { update(1, 0, leaves_, first, last, height); }

  void wait(int32_t rank, int32_t section) {
    auto& ranks = ranks_[at(section)];
    ranks.push_back(rank);
    std::push_heap(ranks.begin(), ranks.end(), std::greater<>());
    refresh(1, 0, leaves_, section);
  }

  /// The waiting item that may lie lowest, ties by rank; at which section; kNone when none waits.
  int32_t next_rank() const { return nodes_[1].lowest_rank; }
  int64_t next_height() const { return nodes_[1].lowest; }
  void pop(int32_t section) {
    auto& ranks = ranks_[at(section)];
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
    int64_t& assigned = nodes_[at(node)].assigned;
    if (assigned < 0) return;
    set(nodes_[at(2 * node)], low, assigned);
    set(nodes_[at(2 * node + 1)], middle, assigned);
    assigned = -1;
  }

  void pull_up(int32_t node) {
    const Node& a = nodes_[at(2 * node)];
    const Node& b = nodes_[at(2 * node + 1)];
    Node& both = nodes_[at(node)];
    both.max = higher(a.max, b.max);
    std::tie(both.lowest, both.lowest_rank) =
        std::min(std::tie(a.lowest, a.lowest_rank), std::tie(b.lowest, b.lowest_rank));
    both.first_rank = std::min(a.first_rank, b.first_rank);
  }

  Peak query(int32_t node, int32_t low, int32_t high, int32_t first, int32_t last) const {
    if (last <= low || high <= first) return {-1, low};
    const Node& here = nodes_[at(node)];
    if (here.assigned >= 0) return {here.assigned, std::max(low, first)};
    if (first <= low && high <= last) return here.max;
    const int32_t middle = (low + high) / 2;
    return higher(query(2 * node, low, middle, first, last), query(2 * node + 1, middle, high, first, last));
  }

  void update(int32_t node, int32_t low, int32_t high, int32_t first, int32_t last, int64_t height) {
    if (last <= low || high <= first) return;
    if (first <= low && high <= last) {
      set(nodes_[at(node)], low, height);
      if (high - low == 1) nodes_[at(node)].assigned = -1;
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
      Node& leaf = nodes_[at(node)];
      const auto& ranks = ranks_[at(section)];
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

}  // namespace

Packing skyline(const Problem& problem, std::span<const int32_t> rank) {
  Packing packing;
  packing.offsets.resize(problem.items.size());
  const std::vector<int32_t> order = order_of(rank);
  const std::vector<int32_t> peaks = peak_sections(problem);
  std::vector<int32_t> waits_at(rank.size());
  Skyline tops(problem.num_sections());
  const auto wait = [&](int32_t r, int32_t section) {
    waits_at[at(r)] = section;
    tops.wait(r, section);
  };
  for (size_t i = 0; i < rank.size(); ++i) wait(rank[i], peaks[i]);
  while (tops.next_rank() != Skyline::kNone) {
    const int32_t r = tops.next_rank();
    const int32_t i = order[at(r)];
    const Item& item = problem.items[at(i)];
    const int64_t height = tops.next_height();
    tops.pop(waits_at[at(r)]);
    ++packing.steps;
    const Peak top = tops.max(item.first, item.last);
    if (top.height > height) {
      const int32_t peak = peaks[at(i)];
      wait(r, tops.max(peak, peak + 1).height == top.height ? peak : top.section);
      continue;
    }
    const int64_t offset = align_up(height, item.alignment);
    tops.raise(item.first, item.last, offset + item.size);
    packing.offsets[at(i)] = offset;
    packing.height = std::max(packing.height, offset + item.size);
  }
  return packing;
}

}  // namespace plimsoll::memory
