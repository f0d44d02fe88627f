#include "datasets/bucket_order.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/units.h"
#include "datasets/permutation.h"

namespace plimsoll::datasets {
namespace {

/// Sequences of a window: looking up as many lengths takes some 30 ms, once a window.
constexpr int64_t kWindow = 16'384;
/// Batches of a window where batches are large: at most one of them a bucket is mixed.
constexpr int64_t kBatches = 64;
constexpr int64_t kMostWindow = int64_t{1} << 20;
/// Windows kept: a look-up goes on where the one before ended, or near it.
constexpr size_t kSlots = 3;
constexpr size_t kMostBuckets = 256;
constexpr uint64_t kBatchSeed = 0x6275636b65747321;  // another one than the order of the sequences

int64_t window_sequences(int64_t batch_size) {
  return std::max(batch_size, std::min(std::max(kWindow, kBatches * batch_size), kMostWindow));
}

}  // namespace

int64_t BucketOrder::host_bytes(int64_t batch_size) {
  const int64_t most = window_sequences(batch_size) + batch_size;
  return most * static_cast<int64_t>((kSlots + 1) * (sizeof(int32_t) + sizeof(uint8_t)));
}

BucketOrder::BucketOrder(BucketOrderOptions options) : options_(std::move(options)) {
  PLIMSOLL_CHECK(!options_.lengths.empty() && options_.lengths.size() <= kMostBuckets, "too many buckets");
  PLIMSOLL_CHECK(options_.batch_size > 0 && options_.epoch_size > 0, "an order of nothing");
  const int64_t wanted = window_sequences(options_.batch_size);
  windows_per_epoch_ = ceil_div(options_.epoch_size, wanted);
  // Ends are rounded to batches, by less than one.
  const auto most = static_cast<size_t>(std::min(options_.epoch_size, wanted + options_.batch_size));
  slots_.resize(kSlots);
  for (Slot& slot : slots_) {
    slot.order.resize(most);
    slot.bucket.resize(most);
  }
  sorted_.resize(most);
  bucket_of_.resize(most);
}

BucketOrder::Window BucketOrder::window_of(int64_t position) const {
  const int64_t size = options_.epoch_size, count = windows_per_epoch_;
  const int64_t epoch_begin = position / size * size;
  // Even shares of the epoch, the ends between them where a batch ends.
  const auto boundary = [&](int64_t window) {
    if (window <= 0) return epoch_begin;
    if (window >= count) return epoch_begin + size;
    const int64_t share = size / count * window + size % count * window / count;
    return std::max(epoch_begin, (epoch_begin + share) / options_.batch_size * options_.batch_size);
  };
  int64_t window = std::min(count - 1, (position - epoch_begin) / (size / count));
  while (boundary(window) > position) --window;
  while (boundary(window + 1) <= position) ++window;
  return {boundary(window), boundary(window + 1)};
}

Result<int64_t> BucketOrder::at(int64_t first, std::span<int64_t> positions, const LengthOf& length_of,
                                std::span<std::byte> scratch) const {
  const std::scoped_lock lock(mutex_);
  int64_t longest = 0;
  for (int64_t& position : positions) {
    PLIMSOLL_ASSIGN(const Place place, find(first++, length_of, scratch));
    position = place.position;
    longest = std::max(longest, place.length);
  }
  return longest;
}

/// Under the lock.
Result<BucketOrder::Place> BucketOrder::find(int64_t position, const LengthOf& length_of,
                                             std::span<std::byte> scratch) const {
  PLIMSOLL_CHECK(position >= 0, "a position before the start");
  const Window window = window_of(position);
  auto slot = std::find_if(slots_.begin(), slots_.end(),
                           [&](const Slot& s) { return s.window.begin == window.begin; });
  if (slot == slots_.end()) {
    // A run goes on: the earliest is the one that is done with.
    slot = std::min_element(slots_.begin(), slots_.end(),
                            [](const Slot& a, const Slot& b) { return a.window.begin < b.window.begin; });
    slot->window = window;
    auto filled = fill(*slot, length_of, scratch);
    if (!filled) {
      slot->window = {-1, -1};
      return std::move(filled).error();
    }
  }
  const auto place = static_cast<size_t>(position - window.begin);
  return Place{window.begin + slot->order[place], options_.lengths[slot->bucket[place]]};
}

Status BucketOrder::fill(Slot& slot, const LengthOf& length_of, std::span<std::byte> scratch) const {
  for (int64_t p = slot.window.begin; p < slot.window.end; ++p) {
    PLIMSOLL_ASSIGN(const int64_t length, length_of(p, scratch));
    const auto bucket = std::lower_bound(options_.lengths.begin(), options_.lengths.end(), length);
    PLIMSOLL_CHECK(bucket != options_.lengths.end(), "a sequence longer than the last bucket");
    bucket_of_[static_cast<size_t>(p - slot.window.begin)] =
        static_cast<uint8_t>(bucket - options_.lengths.begin());
  }
  arrange(slot);
  return Ok{};
}

void BucketOrder::arrange(Slot& slot) const {
  const int64_t begin = slot.window.begin, count = slot.window.end - begin, size = options_.batch_size;
  // By bucket, and in a bucket as they stood.
  std::array<int64_t, kMostBuckets + 1> next = {};
  for (int64_t i = 0; i < count; ++i) ++next[size_t{bucket_of_[static_cast<size_t>(i)]} + 1];
  for (size_t b = 1; b < next.size(); ++b) next[b] += next[b - 1];
  for (int64_t i = 0; i < count; ++i)
    sorted_[static_cast<size_t>(next[bucket_of_[static_cast<size_t>(i)]]++)] = static_cast<int32_t>(i);
  // head: the rest of the batch that the epoch before began; tail: what the next epoch will complete.
  const int64_t head = std::min(count, (size - begin % size) % size), tail = (count - head) % size;
  const int64_t batches = (count - head - tail) / size;
  const auto put = [&](int64_t place, int64_t from) {
    slot.order[static_cast<size_t>(place)] = sorted_[static_cast<size_t>(from)];
    slot.bucket[static_cast<size_t>(place)] =
        bucket_of_[static_cast<size_t>(sorted_[static_cast<size_t>(from)])];
  };
  for (int64_t i = 0; i < head; ++i) put(i, batches * size + i);
  for (int64_t i = 0; i < tail; ++i) put(head + batches * size + i, batches * size + head + i);
  if (batches == 0) return;
  const Permutation permutation(batches, options_.seed ^ kBatchSeed, static_cast<uint64_t>(begin));
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t from = options_.shuffle ? permutation.at(b) : b;
    for (int64_t r = 0; r < size; ++r) put(head + b * size + r, from * size + r);
  }
}

}  // namespace plimsoll::datasets
