// Moves states between the host and wherever they lie, piece by piece through planned staging memory, or at
// once where the host reaches them.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"
#include "runtime/device.h"

namespace plimsoll::runtime {

/// Takes a piece, `offset` bytes into what is read.
using TakePiece = std::function<Status(std::span<const std::byte> piece, int64_t offset)>;
/// Fills a piece, `offset` bytes into what is written.
using FillPiece = std::function<Status(std::span<std::byte> piece, int64_t offset)>;

/// One mover, on one queue. Threads: one at a time.
class Transfer {
 public:
  /// Two buffers of `buffer_bytes` at `staging`, pinned host memory; none where only memory that the host
  /// reaches is moved.
  Transfer(Device& device, ir::Queue queue, Location staging, int64_t buffer_bytes);

  /// Hands over all bytes in order, when what was queued on the queue before is done. Pieces are valid during
  /// the call alone. Errors: of the device, of a disk, or the first that `take` returns. That of a disk is
  /// the caller's alone: it does not stop the device.
  Status read(Location source, int64_t bytes, const TakePiece& take);
  /// Has all bytes filled in order. Async: the last pieces may be under way. Errors: as read.
  Status write(Location destination, int64_t bytes, const FillPiece& fill);

 private:
  [[nodiscard]] std::span<std::byte> buffer(size_t slot) const;
  [[nodiscard]] Location buffer_place(size_t slot) const;
  Status queue_read(Location source, int64_t bytes, int64_t at);
  Status read_disk(Location source, int64_t bytes, const TakePiece& take);

  Device& device_;
  ir::Queue queue_;
  Location staging_;
  int64_t buffer_bytes_;
  std::array<EventId, 2> events_{};  ///< the last copy of each buffer
  size_t next_ = 0;                  ///< buffer of the next write
};

}  // namespace plimsoll::runtime
