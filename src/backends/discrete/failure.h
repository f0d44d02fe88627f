// The first error of a device, which stops it for good.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "base/result.h"

namespace plimsoll::discrete {

/// Threads: any number at a time.
class Failure {
 public:
  [[nodiscard]] bool occurred() const { return occurred_.load(std::memory_order_acquire); }
  /// The first one counts.
  void report(Error error) {
    const std::lock_guard lock(mutex_);
    if (occurred()) return;
    error_ = std::move(error);
    occurred_.store(true, std::memory_order_release);
  }
  /// The error, or success.
  [[nodiscard]] Status status() const {
    if (!occurred()) return Ok{};
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  std::atomic<bool> occurred_{false};
  mutable std::mutex mutex_;
  Error error_;
};

}  // namespace plimsoll::discrete
