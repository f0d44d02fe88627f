#include "backends/cpu/network_thread.h"

#include <utility>

#include "base/caught.h"

namespace plimsoll::cpu {

NetworkThread::NetworkThread(runtime::Communicator& communicator) : communicator_(communicator) {
  communicator_.note_held(0);
}

NetworkThread::~NetworkThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status NetworkThread::start() {
  if (thread_.joinable()) return Ok{};
  PLIMSOLL_ASSIGN(thread_, Thread::start("exchanging with other ranks", [this] { loop(); }));
  return Ok{};
}

template <typename Condition>
void NetworkThread::wait_until(std::unique_lock<std::mutex>& lock, const Condition& condition) {
  if (condition()) return;
  const double before = communicator_.waited_seconds();
  changed_.wait(lock, condition);
  communicator_.note_held(communicator_.waited_seconds() - before);
}

Status NetworkThread::queue(const Work& work) {
  PLIMSOLL_TRY(start());
  std::unique_lock lock(mutex_);
  wait_until(lock, [&] { return queued_ - ended_ < kCapacity; });
  if (failure_) return *failure_;
  ring_[queued_ % kCapacity] = work;
  ++queued_;
  lock.unlock();
  changed_.notify_all();
  return Ok{};
}

Status NetworkThread::wait(uint64_t ended) {
  std::unique_lock lock(mutex_);
  wait_until(lock, [&] { return ended_ >= ended; });
  if (failure_) return *failure_;
  return Ok{};
}

void NetworkThread::loop() {
  for (std::unique_lock lock(mutex_);; ++ended_, changed_.notify_all()) {
    changed_.wait(lock, [&] { return stopping_ || queued_ > ended_; });
    if (stopping_) return;
    if (failure_) continue;
    const Work& work = ring_[ended_ % kCapacity];
    lock.unlock();
    Status status = caught([&] { return run(work, nullptr); });
    lock.lock();
    if (!status) failure_ = std::move(status).error();
  }
}

}  // namespace plimsoll::cpu
