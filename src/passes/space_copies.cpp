#include "passes/space_copies.h"

#include <algorithm>
#include <vector>

#include "passes/memory_plan.h"
#include "passes/slot.h"

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
    if (free_[slot(place)] < bytes) return false;
    free_[slot(place)] -= bytes;
    return true;
  }

 private:
  std::vector<int64_t> free_;
};

/// To the device in the order of first uses, which is the queue's.
void start_early(OffloadItems& items, Room& room, MemorySpace to) {
  int32_t before = 0;
  for (OffloadLoad& load : items.loads) {
    if (load.to != to) continue;
    const int32_t earliest =
        std::max({before, items.items[slot(load.item)].earliest, load.first - kMostAhead});
    const int64_t bytes = round_up(load.bytes, kStorageAlignment);
    while (load.start > earliest && room.take(load.start - 1, bytes)) --load.start;
    if (to == MemorySpace::kDevice) before = load.start;
  }
}

void end_late(OffloadItems& items, Room& room, MemorySpace from, int32_t num_ops) {
  for (OffloadStore& store : items.stores) {
    if (store.from != from) continue;
    const int32_t latest = std::min(store.at + kMostAhead, num_ops);
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

void space_copies(const OffloadOutliner& outliner, const OffloadOptions& options, OffloadItems& items) {
  if (options.slack_part < 0) return;
  const OffloadOutline plain = outliner.outline(options, items);
  const auto move_apart = [&](MemorySpace space, int64_t least) {
    Room room(plain, space, options.slack_part, least);
    start_early(items, room, space);
    end_late(items, room, space, static_cast<int32_t>(outliner.graph().order().size()));
  };
  move_apart(MemorySpace::kDevice, 0);
  if (const int64_t most = under_way(items, options.slack_part > 0); most > 0)
    move_apart(MemorySpace::kHostPinned, most);
}

}  // namespace plimsoll::passes
