// The order of sequences with length buckets; each effective batch holds sequences of similar length: the
// order of the run, rearranged within windows.
//
//   an epoch:   | window | window | … |           each window: sorted by bucket, cut into effective batches,
//   a window:   | 1 1 1 1 | 2 2 2 2 | 2 2 3 3 |   the batches drawn in an order of the window's own
//
// What does not fill a batch of its bucket stands in one of the next. Where an epoch does not end with a
// batch, the batch across its end takes the longest sequences of both sides. A window is never more than one
// epoch's, so each epoch still holds each of its sequences once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "base/result.h"

namespace plimsoll::datasets {

struct BucketOrderOptions {
  std::vector<int64_t> lengths = {};  ///< of the buckets, ascending
  int64_t batch_size = 1;             ///< sequences of an effective batch
  int64_t epoch_size = 1;             ///< positions of an epoch
  uint64_t seed = 0;
  bool shuffle = true;  ///< batches of a window in random order; false: short ones first
};

/// A pure function of options, lengths and position: the same after a resume, by any number of threads.
/// Windows are computed when they are first asked for, O(window) once, and kept a few at a time.
class BucketOrder {
 public:
  /// The length of the sequence at a position of the order that is rearranged; called under a lock.
  using LengthOf = std::function<Result<int64_t>(int64_t position, std::span<std::byte> scratch)>;

  /// Everything is sized here. Memory: host_bytes.
  explicit BucketOrder(BucketOrderOptions options);
  /// An upper bound, whatever the data.
  static int64_t host_bytes(int64_t batch_size);

  /// What stands at positions.size() positions from `first` on, in the order that is rearranged, and the
  /// longest bucket's length. Looked up in one go, so that threads which stand far apart do not take each
  /// other's windows. Allocates nothing. Async: const, from any thread. Errors: length_of's.
  Result<int64_t> at(int64_t first, std::span<int64_t> positions, const LengthOf& length_of,
                     std::span<std::byte> scratch) const;
  /// The window around `position`: [begin, end).
  struct Window {
    int64_t begin = 0, end = 0;
  };
  [[nodiscard]] Window window_of(int64_t position) const;

 private:
  struct Place {
    int64_t position = 0;  ///< in the order that is rearranged
    int64_t length = 0;    ///< of its bucket
  };
  struct Slot {
    Window window = {-1, -1};
    std::vector<int32_t> order;   ///< from place to what stands there, both from the window's beginning
    std::vector<uint8_t> bucket;  ///< by place
  };
  Result<Place> find(int64_t position, const LengthOf& length_of, std::span<std::byte> scratch) const;
  Status fill(Slot& slot, const LengthOf& length_of, std::span<std::byte> scratch) const;
  void arrange(Slot& slot) const;

  BucketOrderOptions options_;
  int64_t windows_per_epoch_ = 1;
  mutable std::mutex mutex_;
  mutable std::vector<Slot> slots_;
  mutable std::vector<int32_t> sorted_;
  mutable std::vector<uint8_t> bucket_of_;  ///< of the window's sequences in the order that is rearranged
};

}  // namespace plimsoll::datasets
