// No wake-up is lost: a sleeper writes what it wants and then reads the value, who raises writes the value
// and then reads what is wanted, all in one order of memory (seq_cst), so one of them sees the other.
#include "backends/discrete/counter.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plimsoll::discrete {
namespace {

// About the price of falling asleep and being woken.
constexpr auto kSpinTime = std::chrono::microseconds(5);

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

void Counter::raise(uint64_t value) {
  uint64_t now = value_.load(std::memory_order_relaxed);
  do {
    if (now >= value) return;
  } while (!value_.compare_exchange_weak(now, value));
  if (value < wanted_.load()) return;
  {
    const std::lock_guard lock(mutex_);
    wanted_.store(kNobody);
  }
  reached_.notify_all();  // who wants more says so again
}

bool Counter::spin(uint64_t value) const {
  if (this->value() >= value) return true;
  const auto end = Clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 8; ++i) {
      pause();
      if (this->value() >= value) return true;
    }
  } while (Clock::now() < end);
  return false;
}

void Counter::want(uint64_t value) { wanted_.store(std::min(value, wanted_.load())); }

void Counter::wait(uint64_t value) {
  if (spin(value)) return;
  std::unique_lock lock(mutex_);
  for (want(value); value_.load() < value; want(value)) reached_.wait(lock);
}

bool Counter::wait_until(uint64_t value, Clock::time_point deadline) {
  if (this->value() >= value) return true;
  std::unique_lock lock(mutex_);
  for (want(value); value_.load() < value; want(value))
    if (reached_.wait_until(lock, deadline) == std::cv_status::timeout) return this->value() >= value;
  return true;
}

}  // namespace plimsoll::discrete
