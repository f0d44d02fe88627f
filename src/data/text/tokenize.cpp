// Batches go round: the reader fills, a worker encodes, the caller's thread empties them in the order in
// which they were filled. There are few of them, so that nothing piles up.
#include "data/text/tokenize.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/text/batch_memory.h"
#include "data/text/parse_example.h"
#include "data/text/record_reader.h"

namespace plimsoll {
namespace {

// Large enough that handing over costs nothing (4 ms of encoding), small enough to keep all threads busy
// until the end of a small input.
constexpr size_t kBatchBytes = size_t{256} << 10;
constexpr size_t kBatchRecords = 4096;
constexpr std::chrono::milliseconds kGlance{50};
constexpr std::chrono::milliseconds kBetweenReports{100};

using text::empty;
using text::kMostBytesUnderWay;

struct Document {
  size_t begin = 0, end = 0;  // in ids
  bool all_in_loss = true;
  bool continues = false;
};

struct Batch {
  std::string bytes;
  std::vector<text::Record> records;
  int64_t bytes_read = 0;
  size_t num_files = 0;
  bool done = false;  // guarded by the pipeline's mutex
  // What became of them.
  std::vector<int32_t> ids;
  std::vector<uint8_t> in_loss;  // as long as ids
  std::vector<Document> documents;
  SkipCounts skipped;
  std::optional<Error> error;  // behind the documents

  void reset() {
    empty(bytes);
    empty(records);
    empty(ids);
    empty(in_loss);
    empty(documents);
    skipped = {};
    error.reset();
    done = false;
  }
};

/// A thread's own memory, and what it does to a batch.
class Worker {
 public:
  Worker(const ExampleReader& reader, const ExampleEncoder& encoder) : reader_(reader), encoder_(encoder) {}

  void run(Batch& batch) {
    for (const text::Record& record : batch.records) {
      std::optional<BadExample> bad =
          text::to_example(batch.bytes, record, reader_.files(), reader_.options().text_key, example_);
      if (!bad) bad = encoder_.encode(example_, scratch_, encoded_);
      if (bad && (reader_.options().on_error == OnError::kFail || bad->error.code != ErrorCode::kBadData)) {
        batch.error = std::move(bad->error);
        break;
      }
      if (bad) {
        batch.skipped.add(bad->reason);
        if (record.is_json) continue;
        encoded_ = {};
      }
      add(batch, record.continues);
    }
    tidy();
  }

 private:
  void add(Batch& batch, bool continues) const {
    const size_t begin = batch.ids.size();
    batch.ids.insert(batch.ids.end(), encoded_.ids.begin(), encoded_.ids.end());
    const bool all = encoded_.in_loss.empty();
    if (!all) {
      batch.in_loss.resize(begin, 1);
      batch.in_loss.insert(batch.in_loss.end(), encoded_.in_loss.begin(), encoded_.in_loss.end());
    }
    batch.documents.push_back({begin, batch.ids.size(), all, continues});
  }

  void tidy() {
    for (std::string* text : {&example_.text, &example_.completion, &example_.record, &example_.prompt_record,
                              &scratch_.joined, &scratch_.chat.text, &scratch_.prompt_chat.text})
      empty(*text);
    empty(encoded_.ids);
    empty(encoded_.in_loss);
    empty(scratch_.ends);
  }

  const ExampleReader& reader_;
  const ExampleEncoder& encoder_;
  Example example_;
  ExampleEncoder::Scratch scratch_;
  EncodedExample encoded_;
};

class Pipeline {
 public:
  Pipeline(ExampleReader& reader, const ExampleEncoder& encoder, int num_threads) : reader_(reader) {
    batches_.resize(2 * static_cast<size_t>(num_threads) + 2);
    for (auto& batch : batches_) batch = std::make_unique<Batch>();
    threads_.emplace_back([this] { read(); });
    for (int i = 0; i < num_threads; ++i)
      threads_.emplace_back([this, &encoder] { work(Worker(reader_, encoder)); });
  }

  ~Pipeline() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// The next batch in order, if it is done within a moment; null otherwise.
  Batch* next_done() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kGlance, [&] { return (num_emptied_ < num_filled_ && front().done) || ended(); });
    return num_emptied_ < num_filled_ && front().done ? &front() : nullptr;
  }
  bool at_end() {
    const std::scoped_lock lock(mutex_);
    return ended();
  }
  /// Hands the batch of next_done back.
  void give_back(Batch& batch) {
    const auto bytes = static_cast<int64_t>(batch.bytes.size());
    batch.reset();
    const std::scoped_lock lock(mutex_);
    bytes_under_way_ -= bytes;
    ++num_emptied_;
    changed_.notify_all();
  }

 private:
  Batch& front() { return *batches_[num_emptied_ % batches_.size()]; }
  bool ended() const { return all_read_ && num_emptied_ == num_filled_; }

  void read() {
    for (bool more = true; more;) {
      Batch* batch = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
          const size_t under_way = num_filled_ - num_emptied_;
          return stopping_ || under_way == 0 ||
                 (under_way < batches_.size() && bytes_under_way_ < kMostBytesUnderWay);
        });
        if (stopping_) return;
        batch = batches_[num_filled_ % batches_.size()].get();
      }
      more = fill(*batch);
      const std::scoped_lock lock(mutex_);
      bytes_under_way_ += static_cast<int64_t>(batch->bytes.size());
      waiting_.push_back(batch);
      ++num_filled_;
      all_read_ = !more;
      changed_.notify_all();
    }
  }

  /// False where nothing comes behind this batch.
  bool fill(Batch& batch) {
    bool more = true;
    while (more && batch.bytes.size() < kBatchBytes && batch.records.size() < kBatchRecords) {
      text::Record record;
      Result<bool> found = reader_.records().next(batch.bytes, record);
      if (found && *found) batch.records.push_back(record);
      more = found && *found;
      if (!found) batch.error = std::move(found).error();
    }
    batch.skipped.add(reader_.records().take_skipped());
    batch.bytes_read = reader_.bytes_read();
    batch.num_files = reader_.records().num_files_begun();
    return more;
  }

  void work(Worker worker) {
    for (;;) {
      Batch* batch = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || all_read_ || !waiting_.empty(); });
        if (stopping_ || waiting_.empty()) return;
        batch = waiting_.front();
        waiting_.pop_front();
      }
      worker.run(*batch);
      const std::scoped_lock lock(mutex_);
      batch->done = true;
      changed_.notify_all();
    }
  }

  ExampleReader& reader_;
  std::vector<std::unique_ptr<Batch>> batches_;  // a ring: batch n lies at n % size
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch*> waiting_;  // filled, no worker's yet
  size_t num_filled_ = 0, num_emptied_ = 0;
  int64_t bytes_under_way_ = 0;
  bool all_read_ = false, stopping_ = false;
  std::vector<std::thread> threads_;
};

/// The caller's side: counts, and hands documents on.
class Consumer {
 public:
  Consumer(const TokenSink& sink, int64_t total_bytes) : sink_(sink) { counts.total_bytes = total_bytes; }

  Status take(const Batch& batch) {
    for (const Document& document : batch.documents) PLIMSOLL_TRY(take(batch, document));
    counts.text_bytes += static_cast<int64_t>(batch.bytes.size());
    counts.bytes_read = batch.bytes_read;
    counts.num_files = static_cast<int64_t>(batch.num_files);
    counts.skipped.add(batch.skipped);
    if (batch.error) return *batch.error;
    return Ok{};
  }

  TokenizeCounts counts;

 private:
  Status take(const Batch& batch, const Document& document) {
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
    ++counts.num_examples;
    ++(has_tokens_ ? counts.num_documents : counts.num_empty);
    has_tokens_ = false;
    return Ok{};
  }

  const TokenSink& sink_;
  bool is_open_ = false;     // the sink waits for a document's next piece
  bool has_tokens_ = false;  // of the document at hand
};

Error interrupted() {
  return {ErrorCode::kInterrupted, "stopped by a signal, nothing was written", {}, "run it again"};
}

}  // namespace

Result<TokenizeCounts> tokenize_files(ExampleReader& reader, const ExampleEncoder& encoder,
                                      const TokenSink& sink, const TokenizeOptions& options) {
  PLIMSOLL_CHECK(options.num_threads >= 1, "no thread to encode on");
  Consumer consumer(sink, reader.total_bytes());
  Pipeline pipeline(reader, encoder, options.num_threads);
  auto reported = std::chrono::steady_clock::now();
  for (;;) {
    if (options.stop && options.stop()) return interrupted();
    if (Batch* batch = pipeline.next_done()) {
      PLIMSOLL_TRY(consumer.take(*batch));
      pipeline.give_back(*batch);
    } else if (pipeline.at_end()) {
      return std::move(consumer.counts);
    }
    const auto now = std::chrono::steady_clock::now();
    if (!options.progress || now - reported < kBetweenReports) continue;
    options.progress(consumer.counts);
    reported = now;
  }
}

}  // namespace plimsoll
