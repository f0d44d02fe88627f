#include "passes/offload/space_copies.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <vector>

#include "base/at.h"
#include "passes/memory/memory_plan.h"

namespace plimsoll::passes {
namespace {

using ir::MemorySpace;

/// A copy is under way beside at most so many ops: what is earlier only holds memory.
constexpr int32_t kMostAhead = 512;

/// Bytes of a space that are free at each op.
class Room {
 public:
  /// As many as `slack_part` lets copies add to the peak, or `least` where that is more.
  Room(const OffloadOutline& plain, MemorySpace space, int64_t slack_part, int64_t least)
      : free_(plain.alive[static_cast<size_t>(space)]) {
    const int64_t peak = plain.peak_bytes[static_cast<size_t>(space)];
    const int64_t limit = peak + std::max(slack_part > 0 ? peak / slack_part : 0, least);
    for (int64_t& bytes : free_) bytes = limit - bytes;
  }
  bool take(int32_t place, int64_t bytes) {
    if (free_[at(place)] < bytes) return false;
    free_[at(place)] -= bytes;
    return true;
  }

 private:
  std::vector<int64_t> free_;
};

/// How early loads are to begin, and how late stores to end, at most: their queues' time, reckoned at
/// kMargin times what it is, as estimates are.
class Windows {
 public:
  Windows(const OffloadOutliner& outliner, const OffloadOptions& options, const OffloadItems& items,
          const CopyTimes& times)
      : outliner_(outliner), options_(options), known_(!times.kernel_seconds.empty()) {
    if (!known_) return;
    double now = 0;
    for (size_t place = 0; place < times.kernel_seconds.size(); ++place) {
      begins_.push_back(now);
      now += items.on_host[place] ? 0 : times.kernel_seconds[place];
    }
    begins_.push_back(now);
    find_loads(items, times);
    find_stores(items, times);
  }
  /// The place before which there is no need to begin.
  [[nodiscard]] int32_t earliest(size_t load) const { return known_ ? earliest_[load] : 0; }
  /// The place behind which there is no need to end.
  [[nodiscard]] int32_t latest(size_t store) const {
    return known_ ? latest_[store] : std::numeric_limits<int32_t>::max();
  }

 private:
  static constexpr double kMargin = 2;

  /// Backwards along a queue: each is to be there when it is read, and out of the way of those behind it.
  void find_loads(const OffloadItems& items, const CopyTimes& times) {
    earliest_.resize(items.loads.size());
    std::array<double, ir::kNumSpaces> next;  // by where they go, which is by queue
    next.fill(std::numeric_limits<double>::max());
    for (size_t l = items.loads.size(); l-- > 0;) {  // by first use
      const OffloadLoad& load = items.loads[l];
      const bool in = load.to == MemorySpace::kDevice;
      const MemorySpace from = in ? items.items[at(load.item)].space : MemorySpace::kDevice;
      double& begin = next[static_cast<size_t>(load.to)];
      begin =
          std::min(begin, begins_[at(load.first)]) - kMargin * times.copy_seconds(load.bytes, from, load.to);
      const auto behind = std::ranges::upper_bound(begins_, begin);
      earliest_[l] = std::max(0, static_cast<int32_t>(behind - begins_.begin()) - 1);
    }
  }
  /// Forwards: each begins when its source is there and those in front of it have ended.
  void find_stores(const OffloadItems& items, const CopyTimes& times) {
    latest_.resize(items.stores.size());
    std::vector<size_t> order(items.stores.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t s) { return items.stores[s].at; });
    std::array<double, ir::kNumSpaces> ends = {};  // by where they come from
    for (const size_t s : order) {
      const OffloadStore& store = items.stores[s];
      const MemorySpace to = store.item >= 0 ? items.items[at(store.item)].space : space_at(store.at);
      double& end = ends[static_cast<size_t>(store.from)];
      end = std::max(end, begins_[at(store.at) + 1]) +
            kMargin * times.copy_seconds(store.bytes, store.from, to);
      latest_[s] = static_cast<int32_t>(std::ranges::lower_bound(begins_, end) - begins_.begin());
    }
  }
  /// Of the state that is assigned there.
  [[nodiscard]] MemorySpace space_at(int32_t place) const {
    const auto state = at(outliner_.uses().state[at(place)]);
    return offloaded_space(options_, outliner_.graph().states()[state], outliner_.uses().state_blocks[state]);
  }

  const OffloadOutliner& outliner_;
  const OffloadOptions& options_;
  bool known_;
  std::vector<double> begins_;  // by place: when its op begins
  std::vector<int32_t> earliest_, latest_;
};

/// To the device in the order of first uses, which is the queue's.
void start_early(OffloadItems& items, const Windows& windows, Room& room, MemorySpace to) {
  int32_t before = 0;
  for (size_t l = 0; l < items.loads.size(); ++l) {
    OffloadLoad& load = items.loads[l];
    if (load.to != to) continue;
    const int32_t earliest =
        std::max({before, items.items[at(load.item)].earliest, load.first - kMostAhead, windows.earliest(l)});
    const int64_t bytes = round_up(load.bytes, kStorageAlignment);
    while (load.start > earliest && room.take(load.start - 1, bytes)) --load.start;
    if (to == MemorySpace::kDevice) before = load.start;
  }
}

void end_late(OffloadItems& items, const Windows& windows, Room& room, MemorySpace from, int32_t num_ops) {
  for (size_t s = 0; s < items.stores.size(); ++s) {
    OffloadStore& store = items.stores[s];
    if (store.from != from) continue;
    const int32_t latest = std::min({store.at + kMostAhead, num_ops, windows.latest(s), store.latest});
    const int64_t bytes = round_up(store.bytes, kStorageAlignment);
    while (store.done < latest && room.take(store.done, bytes)) ++store.done;
  }
}

/// What is on its way to the host's kernels and from them may take so much: with room for copies to be early
/// and late all of it, else two of the largest.
int64_t under_way(const OffloadItems& items, bool all) {
  int64_t largest = 0, sum = 0;
  const auto add = [&](int64_t bytes) {
    bytes = round_up(bytes, kStorageAlignment);
    largest = std::max(largest, bytes), sum += bytes;
  };
  for (const OffloadLoad& load : items.loads)
    if (load.to == MemorySpace::kHostPinned) add(load.bytes);
  for (const OffloadStore& store : items.stores)
    if (store.from == MemorySpace::kHostPinned) add(store.bytes);
  return all ? sum : 2 * largest;
}

}  // namespace

void space_copies(const OffloadOutliner& outliner, const OffloadOptions& options, const CopyTimes& times,
                  OffloadItems& items) {
  if (options.slack_part < 0) return;
  const OffloadOutline plain = outliner.outline(options, items);
  const Windows windows(outliner, options, items, times);
  const auto move_apart = [&](MemorySpace space, int64_t least) {
    Room room(plain, space, options.slack_part, least);
    start_early(items, windows, room, space);
    end_late(items, windows, room, space, static_cast<int32_t>(outliner.graph().order().size()));
  };
  move_apart(MemorySpace::kDevice, 0);
  if (const int64_t most = under_way(items, options.slack_part > 0); most > 0)
    move_apart(MemorySpace::kHostPinned, most);
}

}  // namespace plimsoll::passes
