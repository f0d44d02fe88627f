// The interface of what carries bytes between the ranks of a run: the memory of their machine, or MPI.
#pragma once

#include "ranks/wait_clock.h"
#include "runtime/communicator.h"

namespace plimsoll::ranks {

/// Seconds that a transport waits for the group to name a rank that has ended, before it reports its own
/// error.
inline constexpr double kNamedSeconds = 0.8;

class Transport : public runtime::Communicator {
 public:
  /// Connects this rank to the others. All ranks call it at the same place, before they exchange anything;
  /// the process forks no child after that. Errors: kIo.
  virtual Status open() = 0;
  /// Ends in order, once no rank has anything more to exchange. A rank that fails does not call it.
  virtual void close() {}
  /// Seconds that this rank waited for others since it was last asked; where a device exchanges beside its
  /// kernels, those that kernels waited. Any thread.
  double take_wait_seconds() { return waits_.take(); }
  [[nodiscard]] double waited_seconds() const override { return waits_.seconds(); }
  void note_held(double seconds) override { waits_.hold(seconds); }

 protected:
  WaitClock waits_;
};

}  // namespace plimsoll::ranks
