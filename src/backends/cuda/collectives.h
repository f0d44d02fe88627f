// Moves bytes between the memory of a card and that of other ranks' cards, for ops between ranks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cuda/stream.h"
#include "base/result.h"

namespace plimsoll::cuda {

/// How many of the bytes from `begin` on there are, where all end at `end`.
constexpr int64_t part_bytes(int64_t begin, int64_t bytes, int64_t end) {
  return std::clamp<int64_t>(end - begin, 0, bytes);
}

/// Async: each call queues its work on the stream, which is the same for all, and returns; it may be
/// captured. The work waits on the stream for the other ranks, which queue the same in the same order. What
/// they move is runtime::Communicator's.
class Collectives {
 public:
  virtual ~Collectives() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;

  /// Whether connect() comes before anything is queued or captured, once the ranks can reach each other.
  [[nodiscard]] virtual bool connects() const { return false; }
  /// All ranks call it at the same place, with the card's context current. Errors: kIo.
  virtual Status connect() { return Ok{}; }

  /// `own` has `own_bytes`, `received` a piece of each rank.
  virtual Status exchange(const std::byte* own, int64_t own_bytes, int64_t piece_bytes, std::byte* received,
                          Stream& stream) = 0;
  virtual Status gather(const std::byte* piece, int64_t piece_bytes, std::byte* whole, int64_t whole_bytes,
                        Stream& stream) = 0;
  virtual Status broadcast(int root, std::byte* data, int64_t bytes, Stream& stream) = 0;
  /// Whether work that was queued has failed: what is behind it on the stream is undefined. Any thread.
  /// Errors: kIo, of another rank or of what moves the bytes.
  [[nodiscard]] virtual Status status() const = 0;
  /// Whether the card itself waits for other ranks: who waits for the card looks meanwhile, so that what
  /// waits in vain ends.
  [[nodiscard]] virtual bool is_watched() const { return false; }
  /// Errors: as status.
  virtual Status look() { return status(); }
};

}  // namespace plimsoll::cuda
