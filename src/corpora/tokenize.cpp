// Every thread does what is needed next: hand on the first batch in order, where it is done, or else read the
// next one and encode it. Reading and handing on are one thread's at a time, and short beside encoding.
// Batches are few, so that nothing piles up.
#include "corpora/tokenize.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "base/process_memory.h"
#include "base/thread.h"
#include "corpora/batch_memory.h"
#include "corpora/token_batch.h"
#include "corpora/tokenizing_memory.h"

namespace plimsoll::corpora {
namespace {

constexpr std::chrono::milliseconds kGlance{50};
constexpr std::chrono::milliseconds kBetweenReports{100};

using std::chrono::steady_clock;

/// Counts, and hands documents on.
class Consumer {
 public:
  Consumer(const TokenSink& sink, int64_t total_bytes, int64_t max_documents)
      : sink_(sink), max_documents_(max_documents) {
    counts.total_bytes = total_bytes;
  }

  /// Whether there are as many documents as may be.
  [[nodiscard]] bool is_full() const { return max_documents_ > 0 && counts.num_documents >= max_documents_; }

  Status take(const TokenBatch& batch) {
    for (const TokenBatch::Document& document : batch.documents) {
      if (is_full()) break;
      PLIMSOLL_TRY(take(batch, document));
    }
    counts.text_bytes += static_cast<int64_t>(batch.bytes.size());
    counts.bytes_read = batch.bytes_read;
    counts.num_files = static_cast<int64_t>(batch.num_files);
    counts.skipped.add(batch.skipped);
    counts.remarks.add(batch.remarks);
    if (batch.error && !is_full()) return *batch.error;
    return Ok{};
  }

  TokenizeCounts counts;

 private:
  Status take(const TokenBatch& batch, const TokenBatch::Document& document) {
    const size_t size = document.end - document.begin;
    const std::span ids(batch.ids.data() + document.begin, size);
    std::span<const uint8_t> in_loss;
    if (!document.all_in_loss) in_loss = {batch.in_loss.data() + document.begin, size};
    if (size > 0 || is_open_) PLIMSOLL_TRY(sink_(ids, in_loss, document.continues));
    is_open_ = document.continues && (size > 0 || is_open_);
    const bool begins = !has_tokens_ && size > 0;
    has_tokens_ = has_tokens_ || size > 0;
    counts.num_tokens += static_cast<int64_t>(size);
    counts.num_targets +=
        static_cast<int64_t>(in_loss.empty() ? size : std::count(in_loss.begin(), in_loss.end(), 1));
    if (begins && (in_loss.empty() || in_loss[0] == 1)) --counts.num_targets;  // nothing predicts it
    if (document.continues) return Ok{};
    if (!document.is_part) ++counts.num_examples;
    ++(has_tokens_ ? counts.num_documents : counts.num_empty);
    has_tokens_ = false;
    return Ok{};
  }

  const TokenSink& sink_;
  const int64_t max_documents_;
  bool is_open_ = false;     // the sink waits for a document's next piece
  bool has_tokens_ = false;  // of the document at hand
};

/// The caller's thread and its helpers. Batch n of the files lies in the ring at n % size:
///
///   … emptied | filled: being encoded, or done | free …
///             ^ num_emptied_                    ^ num_filled_
class Crew {
 public:
  Crew(ExampleReader& reader, const ExampleEncoder& encoder, const TokenSink& sink,
       const TokenizeOptions& options, const TokenizingMemory& memory)
      : reader_(reader),
        encoder_(encoder),
        options_(options),
        memory_(memory),
        consumer_(sink, reader.total_bytes(), options.max_documents),
        ring_(2 * static_cast<size_t>(memory.num_threads) + 2) {
    counts_ = consumer_.counts;
    for (Slot& slot : ring_) slot.batch = std::make_unique<TokenBatch>();
    reader_.records().set_stop([this] {
      if (std::this_thread::get_id() == caller_) glance();
      return stopping_.load(std::memory_order_relaxed);
    });
  }
  ~Crew() { reader_.records().set_stop({}); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  Result<TokenizeCounts> run() {
    {
      std::vector<Thread> helpers;
      std::unique_lock lock(mutex_);  // nobody begins before all are there
      for (int i = 1; i < memory_.num_threads; ++i) {
        auto started = Thread::start("tokenizing", [this] { work(); });
        if (!started) {
          stopping_ = true;
          lock.unlock();
          return std::move(started).error();
        }
        helpers.push_back(std::move(*started));
      }
      lock.unlock();
      work();
    }
    if (error_) return std::move(*error_);
    if (stopping_) return interrupted();
    return std::move(consumer_.counts);
  }

 private:
  struct Slot {
    std::unique_ptr<TokenBatch> batch;
    bool done = false;  // guarded by the mutex; the batch is its thread's
  };
  Slot& slot(size_t number) { return ring_[number % ring_.size()]; }

  // All of these with the mutex held.
  bool ended() const { return stopping_ || is_full_ || (all_read_ && num_emptied_ == num_filled_); }
  bool can_hand_on() { return !handing_on_ && num_emptied_ < num_filled_ && slot(num_emptied_).done; }
  bool can_read() const {
    const size_t under_way = num_filled_ - num_emptied_;
    return !reading_ && !all_read_ &&
           (under_way == 0 || (under_way < ring_.size() && bytes_under_way_ < memory_.most_bytes_under_way));
  }

  /// What is thrown here, for want of memory, ends the others too.
  void work() {
    Status done = caught([&]() -> Status { return work_on(), Ok{}; });
    if (done) return;
    const std::scoped_lock lock(mutex_);
    if (!stopping_) error_ = std::move(done).error();
    stopping_ = true;
    changed_.notify_all();
  }

  void work_on() {
    const bool is_caller = std::this_thread::get_id() == caller_;
    BatchEncoder encoder(reader_, encoder_);
    for (std::unique_lock lock(mutex_); !ended();) {
      if (can_hand_on())
        hand_on(lock);
      else if (can_read())
        read_and_encode(lock, encoder);
      else if (is_caller)
        changed_.wait_for(lock, kGlance);
      else
        changed_.wait(lock);
      if (!is_caller) continue;
      lock.unlock();
      glance();
      lock.lock();
    }
    changed_.notify_all();
  }

  void hand_on(std::unique_lock<std::mutex>& lock) {
    TokenBatch& batch = *slot(num_emptied_).batch;
    handing_on_ = true;
    lock.unlock();
    Status taken = consumer_.take(batch);
    const auto bytes = static_cast<int64_t>(batch.bytes.size());
    batch.reset();
    lock.lock();
    handing_on_ = false;
    slot(num_emptied_).done = false;
    ++num_emptied_;
    bytes_under_way_ -= bytes;
    counts_ = consumer_.counts;
    is_full_ = consumer_.is_full();
    if (!taken) {
      if (!stopping_) error_ = std::move(taken).error();
      stopping_ = true;
    }
    changed_.notify_all();
  }

  void read_and_encode(std::unique_lock<std::mutex>& lock, BatchEncoder& encoder) {
    Slot& mine = slot(num_filled_);
    reading_ = true;
    lock.unlock();
    const bool more = fill(*mine.batch, reader_);
    lock.lock();
    reading_ = false;
    ++num_filled_;
    bytes_under_way_ += static_cast<int64_t>(mine.batch->bytes.size());
    all_read_ = !more;
    changed_.notify_all();
    lock.unlock();
    encoder.run(*mine.batch);
    lock.lock();
    mine.done = true;
    changed_.notify_all();
  }

  /// What the caller wants to be asked and told, on its own thread.
  void glance() {
    if (options_.stop && options_.stop()) {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    const auto now = steady_clock::now();
    if (!options_.progress || now - reported_ < kBetweenReports) return;
    reported_ = now;
    std::unique_lock lock(mutex_);
    const TokenizeCounts counts = counts_;
    lock.unlock();
    options_.progress(counts);
  }

  ExampleReader& reader_;
  const ExampleEncoder& encoder_;
  const TokenizeOptions& options_;
  const TokenizingMemory memory_;
  const std::thread::id caller_ = std::this_thread::get_id();
  steady_clock::time_point reported_ = steady_clock::now();
  Consumer consumer_;  // of the thread that hands on
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> ring_;
  size_t num_filled_ = 0, num_emptied_ = 0;
  int64_t bytes_under_way_ = 0;
  bool reading_ = false, handing_on_ = false, all_read_ = false, is_full_ = false;
  std::atomic<bool> stopping_ = false;  // written with the mutex held
  TokenizeCounts counts_;               // of the batches handed on
  std::optional<Error> error_;
};

}  // namespace

Result<TokenizeCounts> tokenize_files(ExampleReader& reader, const ExampleEncoder& encoder,
                                      const TokenSink& sink, const TokenizeOptions& options) {
  PLIMSOLL_CHECK(options.num_threads >= 1, "no thread to encode on");
  PLIMSOLL_ASSIGN(const TokenizingMemory memory, tokenizing_memory(options.budget_bytes, resident_bytes(),
                                                                   options.num_threads, options.budget_name));
  return Crew(reader, encoder, sink, options, memory).run();
}

}  // namespace plimsoll::corpora
