#include "base/thread.h"

#include <atomic>
#include <utility>

#include "base/caught.h"

namespace plimsoll {
namespace {

std::atomic<int> running{0};

}  // namespace

Result<Thread> Thread::start(std::string_view purpose, std::function<void()> body) {
  try {
    Thread thread;
    thread.thread_ = std::thread(std::move(body));
    running.fetch_add(1, std::memory_order_relaxed);
    return thread;
  } catch (...) {
    Error error = caught_error();
    error.what = "a thread cannot be started: " + error.what;
    error.where = std::string(purpose);
    error.hint =
        "raise the limits on processes and memory (ulimit -u, -v, the container's pids.max), or use fewer "
        "threads: --threads, runtime.threads";
    return error;
  }
}

Thread& Thread::operator=(Thread&& other) noexcept {
  join();
  thread_ = std::move(other.thread_);
  return *this;
}

void Thread::join() {
  if (!thread_.joinable()) return;
  thread_.join();
  running.fetch_sub(1, std::memory_order_relaxed);
}

int Thread::num_running() { return running.load(std::memory_order_relaxed); }

}  // namespace plimsoll
