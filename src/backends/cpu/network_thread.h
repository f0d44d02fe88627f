// A thread on which a CPU exchanges bytes with other ranks, beside its kernels.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "backends/cpu/work.h"
#include "base/thread.h"

namespace plimsoll::cpu {

/// Runs ops between ranks one after the other, in the order in which they are queued. Queueing allocates
/// nothing. Threads: one queues, any wait.
class NetworkThread {
 public:
  /// `communicator` outlives it, and is told how long its callers wait for other ranks.
  explicit NetworkThread(runtime::Communicator& communicator);
  /// Behind what has begun; what has not does not run any more.
  ~NetworkThread();
  NetworkThread(const NetworkThread&) = delete;
  NetworkThread& operator=(const NetworkThread&) = delete;

  /// Once. Errors: kIo where the system gives no thread.
  Status start();
  /// Waits where many are queued already. Errors: of work that was queued before, behind which none runs.
  Status queue(const Work& work);
  [[nodiscard]] uint64_t queued() const { return queued_; }
  /// Until so many have ended. Errors: the first one of those that have.
  Status wait(uint64_t ended);

 private:
  static constexpr uint64_t kCapacity = 64;
  void loop();
  template <typename Condition>
  void wait_until(std::unique_lock<std::mutex>& lock, const Condition& condition);

  runtime::Communicator& communicator_;
  std::array<Work, kCapacity> ring_;
  uint64_t queued_ = 0, ended_ = 0;
  bool stopping_ = false;
  std::optional<Error> failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Thread thread_;
};

}  // namespace plimsoll::cpu
