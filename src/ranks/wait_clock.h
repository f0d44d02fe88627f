// Seconds that a rank waits for others, on whichever thread it exchanges bytes.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "base/process.h"

namespace plimsoll::ranks {

/// Any thread; one waits at a time.
class WaitClock {
 public:
  /// A wait lasts as long as this.
  class Wait {
   public:
    explicit Wait(WaitClock& clock) : clock_(clock) {
      const std::scoped_lock lock(clock_.mutex_);
      clock_.since_ = now_seconds();
    }
    ~Wait() {
      const std::scoped_lock lock(clock_.mutex_);
      clock_.waited_ = clock_.now();
      clock_.since_.reset();
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    WaitClock& clock_;
  };

  /// So far, a wait at hand included.
  [[nodiscard]] double seconds() const {
    const std::scoped_lock lock(mutex_);
    return now();
  }
  /// So many of them kernels waited as well. Once somebody says so, others do not count for take().
  void hold(double seconds) {
    const std::scoped_lock lock(mutex_);
    held_ = held_.value_or(0) + seconds;
  }
  /// Those that count, since this was last asked.
  double take() {
    const std::scoped_lock lock(mutex_);
    const double so_far = now(), waited = so_far - std::exchange(taken_, so_far);
    return held_ ? std::exchange(*held_, 0.0) : waited;
  }

 private:
  [[nodiscard]] double now() const { return waited_ + (since_ ? now_seconds() - *since_ : 0); }

  mutable std::mutex mutex_;
  double waited_ = 0, taken_ = 0;
  std::optional<double> since_, held_;
};

}  // namespace plimsoll::ranks
