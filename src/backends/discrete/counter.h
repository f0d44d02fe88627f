// A number that only rises, and threads that wait until it has reached theirs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace plimsoll::discrete {

/// Any number of threads raise it and wait. What a thread did before it raised the counter is seen by those
/// whom that lets through. Allocates nothing.
class Counter {
 public:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] uint64_t value() const { return value_.load(std::memory_order_acquire); }
  /// To `value`, unless it is higher already. Cheap where nobody waits for it.
  void raise(uint64_t value);
  /// Until it is at least `value`.
  void wait(uint64_t value);
  /// The same, or until the deadline; whether it came so far.
  bool wait_until(uint64_t value, Clock::time_point deadline);

 private:
  static constexpr uint64_t kNobody = UINT64_MAX;
  bool spin(uint64_t value) const;
  void want(uint64_t value);

  std::atomic<uint64_t> value_{0};
  std::atomic<uint64_t> wanted_{kNobody};  ///< the least that a sleeper waits for
  std::mutex mutex_;
  std::condition_variable reached_;
};

}  // namespace plimsoll::discrete
