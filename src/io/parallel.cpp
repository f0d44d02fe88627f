#include "io/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "base/thread.h"

namespace plimsoll::io {

Status in_parallel(size_t count, int num_threads, const std::function<Status(size_t, size_t)>& work) {
  std::atomic<size_t> next = 0, failed = count;
  std::mutex mutex;
  Status first_failure = Ok{};
  const auto claim = [&](size_t t) {
    for (size_t i = next.fetch_add(1); i < failed.load(); i = next.fetch_add(1)) {
      Status status = caught([&] { return work(i, t); });
      if (status) continue;
      const std::lock_guard lock(mutex);
      if (i >= failed.load()) continue;
      failed = i;
      first_failure = std::move(status);
    }
  };
  {
    std::vector<Thread> threads;
    const size_t wanted = std::min(static_cast<size_t>(std::max(num_threads, 1)), count);
    for (size_t t = 1; t < wanted; ++t) {
      auto helper = Thread::start("helping", [&claim, t] { claim(t); });
      if (!helper) break;  // slower without
      threads.push_back(std::move(*helper));
    }
    claim(0);
  }
  return first_failure;
}

}  // namespace plimsoll::io
