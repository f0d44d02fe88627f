// The functions of MPI that ranks exchange bytes by, whichever library has them.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace plimsoll::ranks {

/// The place of a message that is under way; a slot has one at a time.
constexpr int kMpiSlots = 8;

/// One thread at a time calls it. Errors: kIo, with the library's own words.
class MpiCalls {
 public:
  virtual ~MpiCalls() = default;
  /// Starts MPI in this process, for calls from any one thread at a time.
  virtual Status init() = 0;
  /// Waits until all processes have called it.
  virtual void finalize() = 0;
  [[nodiscard]] virtual int rank() = 0;
  [[nodiscard]] virtual int ranks() = 0;
  /// Begins to send; the bytes must not change until it is done. At most 2^31 - 1 bytes.
  virtual Status send(std::span<const std::byte> bytes, int to, int slot) = 0;
  /// Begins to receive just so many bytes. Messages of one rank arrive in the order in which it sent them.
  virtual Status receive(std::span<std::byte> bytes, int from, int slot) = 0;
  /// Whether the slot's message has been sent, or is there. Moves everything that is under way.
  virtual Result<bool> is_done(int slot) = 0;
};

}  // namespace plimsoll::ranks
