// The interface by which the ranks of one run exchange bytes: data parallel processes that train one model
// together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace plimsoll::runtime {

/// Every rank calls the same functions in the same order with the same sizes; each call returns when the rank
/// has what it asked for and every other rank has what it wanted of this one. Allocates nothing.
/// Errors: kIo where another rank has gone.
class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;

  /// All-to-all. `own` consists of pieces of `piece_bytes`, the last ones shorter or empty; piece r belongs
  /// to rank r. Writes this rank's piece of every rank's `own`, rank q's at q * piece_bytes of `received`.
  /// Where a piece is shorter, zeros follow it.
  virtual Status exchange(std::span<const std::byte> own, int64_t piece_bytes,
                          std::span<std::byte> received) = 0;
  /// All-gather. `whole` becomes the pieces of all ranks, rank q's at q * piece.size(); the end is cut.
  virtual Status gather(std::span<const std::byte> piece, std::span<std::byte> whole) = 0;
  /// `bytes` become those of rank `root`. This one gathers all ranks' bytes, part by part; a transport may
  /// know better.
  virtual Status broadcast(int root, std::span<std::byte> bytes);

  // Any thread.

  /// Seconds that this rank has waited for the others so far, a wait at hand included.
  [[nodiscard]] virtual double waited_seconds() const { return 0; }
  /// Of a device that exchanges beside its kernels: so many of these seconds kernels waited, too.
  virtual void note_held(double /*seconds*/) {}
};

}  // namespace plimsoll::runtime
