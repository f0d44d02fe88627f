// Batches read ahead by threads and given out in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "plimsoll/array.h"
#include "plimsoll/result.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {
namespace detail {

/// Reads the batches [first, last) with `workers` threads, at most `ahead` before the one that is asked for;
/// without threads where there are no workers. Its end joins them.
class BatchReader {
 public:
  using Read = std::function<Result<Batch>(int64_t)>;
  BatchReader(Read read, int64_t first, int64_t last, int64_t workers, int64_t ahead)
      : read_(std::move(read)), last_(last), ahead_(ahead), next_(first), taken_(first) {
    for (int64_t i = 0; i < workers && i < last - first; ++i) threads_.emplace_back([this] { work(); });
  }
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;
  ~BatchReader() {
    {
      const std::lock_guard lock(mutex_);
      last_ = next_;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  /// The next one; what the data set throws while it reads it comes out here.
  Result<Batch> take() {
    if (threads_.empty()) return read_(taken_++);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_.contains(taken_); });
    Outcome outcome = std::move(done_.extract(taken_).mapped());
    ++taken_;
    lock.unlock();
    changed_.notify_all();
#ifndef PLIMSOLL_NO_EXCEPTIONS
    if (outcome.thrown) std::rethrow_exception(outcome.thrown);
#endif
    return std::move(outcome.batch);
  }

 private:
  struct Outcome {
    Result<Batch> batch;
    std::exception_ptr thrown;
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return next_ >= last_ || next_ < taken_ + ahead_; });
      if (next_ >= last_) return;
      const int64_t index = next_++;
      lock.unlock();
      Outcome outcome = read(index);
      lock.lock();
      done_.emplace(index, std::move(outcome));
      changed_.notify_all();
    }
  }
  Outcome read(int64_t index) {
#ifndef PLIMSOLL_NO_EXCEPTIONS
    try {
      return {read_(index), nullptr};
    } catch (...) {
      return {Batch(), std::current_exception()};
    }
#else
    return {read_(index), nullptr};
#endif
  }

  Read read_;
  int64_t last_;
  int64_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t next_;   ///< the next to be read
  int64_t taken_;  ///< the next to be given out
  std::map<int64_t, Outcome> done_;
  std::vector<std::thread> threads_;
};

}  // namespace detail
}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
