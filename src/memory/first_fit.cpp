// First fit without lists of overlapping pairs: 18,692 buffers have tens of millions of those.
#include <algorithm>
#include <limits>
#include <utility>

#include "memory/greedy.h"

namespace plimsoll::memory {

namespace {

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
/// one that lives briefly meets only what lives about then. A window that nobody is left to ask holds no
/// more.
///
///   level 0   |───────────────────────────────|      windows of a level overlap by half: an item no longer
///   level 1   |───────|───────|───────|───────|      than half a window lies within one of them
///                 |───────|───────|───────|
class PlacedIndex {
 public:
  explicit PlacedIndex(const Problem& problem) {
    const int32_t sections = problem.num_sections();
    levels_.push_back({sections, std::vector<Window>(1)});
    // Below some dozen items a window the list is as fast as its index.
    int32_t stride = sections;
    for (size_t n = problem.items.size(); n > kItemsPerWindow && stride > 4 && levels_.size() < 7; n /= 4) {
      stride = (stride + 3) / 4;
      levels_.push_back({stride, std::vector<Window>(at(sections / stride + 1))});
    }
    for (const Item& item : problem.items) ++window_of(item).left;
  }

  /// Each item is placed once: the lowest gap it fits into is its place.
  int64_t place(const Item& item) {
    Window& window = window_of(item);
    const int64_t offset = window.placed.lowest_gap(item);
    --window.left;
    for (size_t k = 0; k < levels_.size(); ++k) {
      Level& level = levels_[k];  // window w holds sections [w, w + 2) * stride
      for (int32_t w = std::max(item.first / level.stride - 1, 0); w * level.stride < item.last; ++w)
        if (Window& other = level.windows[at(w)]; other.left > 0) other.placed.insert(item, offset);
    }
    return offset;
  }

 private:
  struct Window {
    PlacedList placed;
    int32_t left = 0;  ///< items yet to be placed that are looked up here
  };
  struct Level {
    int32_t stride = 0;
    std::vector<Window> windows;
  };
  static constexpr size_t kItemsPerWindow = 96;

  Window& window_of(const Item& item) {
    for (size_t k = levels_.size() - 1; k > 0; --k) {
      const int32_t window = item.first / levels_[k].stride;
      if (item.last <= (window + 2) * levels_[k].stride) return levels_[k].windows[at(window)];
    }
    return levels_.front().windows.front();
  }

  std::vector<Level> levels_;
};

}  // namespace

Packing first_fit(const Problem& problem, std::span<const int32_t> rank) {
  Packing packing;
  packing.offsets.resize(problem.items.size());
  PlacedIndex placed(problem);
  for (const int32_t i : order_of(rank)) {
    const Item& item = problem.items[at(i)];
    const int64_t offset = placed.place(item);
    packing.offsets[at(i)] = offset;
    packing.height = std::max(packing.height, offset + item.size);
  }
  return packing;
}

}  // namespace plimsoll::memory
