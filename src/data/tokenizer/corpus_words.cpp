// Errors are kept with the number of their batch: of several the earliest counts.
#include "data/tokenizer/corpus_words.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/text/parse_example.h"
#include "data/text/record_reader.h"
#include "data/tokenizer/unicode.h"
#include "io/json.h"

namespace plimsoll::tokenizer {
namespace {

constexpr size_t kBatchBytes = size_t{512} << 10;  // some ms of work
constexpr size_t kBatchRecords = 4096;
constexpr size_t kKeptBytes = size_t{4} << 20;

/// What the threads share; everything but the text's size under the mutex.
struct Shared {
  ExampleReader& reader;
  std::mutex mutex = {};
  size_t num_batches = 0;
  bool ended = false;
  std::optional<Error> error = {};
  size_t error_batch = 0;
  std::atomic<int64_t> text_bytes{0};
  SkipCounts skipped = {};

  void fail(Error what, size_t batch) {
    ended = true;
    if (error && error_batch <= batch) return;
    error = std::move(what);
    error_batch = batch;
  }
};

class Counter final : public WordSink {
 public:
  Counter(const Normalizer& normalizer, const PreTokenizer& pre_tokenizer)
      : normalizer_(normalizer), pre_tokenizer_(pre_tokenizer) {}
  void word(std::string_view word, const char*) override {
    result.words.add(word);
    ++result.num_words;
  }

  /// Reads a batch and counts its words; false where there is none.
  bool work(Shared& shared) {
    size_t number = 0;
    if (!read(shared, number)) return false;
    const ReaderOptions& options = shared.reader.options();
    for (const text::Record& record : records_) {
      std::optional<BadExample> bad =
          text::to_example(bytes_, record, shared.reader.files(), options.text_key, example_);
      if (!bad) bad = take();
      if (bad && options.on_error == OnError::kFail) {
        const std::lock_guard lock(shared.mutex);
        shared.fail(std::move(bad->error), number);
        return false;
      }
      if (bad)
        result.skipped.add(bad->reason);
      else
        result.num_examples += record.continues ? 0 : 1;
    }
    result.text_bytes += static_cast<int64_t>(bytes_.size());
    shared.text_bytes += static_cast<int64_t>(bytes_.size());
    if (bytes_.capacity() > kKeptBytes) bytes_ = {};
    return true;
  }

  CorpusWords result = {};

 private:
  bool read(Shared& shared, size_t& number) {
    bytes_.clear();
    records_.clear();
    const std::lock_guard lock(shared.mutex);
    number = shared.num_batches++;
    while (!shared.ended && bytes_.size() < kBatchBytes && records_.size() < kBatchRecords) {
      text::Record record;
      Result<bool> found = shared.reader.records().next(bytes_, record);
      if (!found)
        shared.fail(std::move(found).error(), number);
      else if (*found)
        records_.push_back(record);
      else
        shared.ended = true;
    }
    shared.skipped.add(shared.reader.records().take_skipped());
    return !records_.empty();
  }

  std::optional<BadExample> take() {
    switch (example_.kind) {
      case ExampleKind::kText:
        count(example_.text, example_.first);
        return std::nullopt;
      case ExampleKind::kCompletion:
        count(example_.text, true);
        count(example_.completion, true);
        return std::nullopt;
      case ExampleKind::kMessages:
        return take_messages();
    }
    return std::nullopt;
  }

  std::optional<BadExample> take_messages() {
    const auto size = static_cast<int64_t>(example_.record.size());
    auto tree = parse_json(example_.record, {.max_bytes = size, .max_depth = 256, .max_nodes = size});
    if (!tree) {
      Error error = std::move(tree).error();
      error.where = example_.file + ":" + std::to_string(example_.line);
      return BadExample{"not JSON", std::move(error)};
    }
    const Tree* const messages = tree->find("messages");
    if (!messages) return std::nullopt;
    for (const Tree& message : messages->items) {
      const Tree* const content = message.find("content");
      if (!content) continue;
      if (content->kind == Tree::Kind::kString) count(content->text, true);
      for (const Tree& part : content->items)
        if (const Tree* const text = part.find("text"); text && text->kind == Tree::Kind::kString)
          count(text->text, true);
    }
    return std::nullopt;
  }

  void count(std::string_view text, bool first) {
    if (valid_utf8_prefix(text) != text.size()) {
      repaired_.clear();
      append_repaired(text, repaired_);
      text = repaired_;
    }
    bool starts = first;
    const std::string_view normalized = normalizer_.apply(text, normalized_, starts, !first);
    pre_tokenizer_.run(normalized, starts, *this);
  }

  const Normalizer& normalizer_;
  const PreTokenizer& pre_tokenizer_;
  std::string bytes_;
  std::vector<text::Record> records_;
  Example example_;
  std::string repaired_, normalized_;
};

}  // namespace

Result<CorpusWords> count_words(ExampleReader& reader, const Normalizer& normalizer,
                                const PreTokenizer& pre_tokenizer, int num_threads,
                                const std::function<bool(int64_t text_bytes)>& glance) {
  Shared shared{.reader = reader};
  std::vector<Counter> counters;
  for (int i = 0; i < std::max(num_threads, 1); ++i) counters.emplace_back(normalizer, pre_tokenizer);
  bool stopped = false;
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < counters.size(); ++i)
      threads.emplace_back([&shared, &counter = counters[i]] {
        while (counter.work(shared)) {
        }
      });
    while (!stopped && counters.front().work(shared)) stopped = !glance(shared.text_bytes);
    if (stopped) {
      const std::lock_guard lock(shared.mutex);
      shared.ended = true;
    }
  }
  if (stopped)
    return Error{ErrorCode::kInterrupted, "stopped by a signal, nothing was written", {}, "run it again"};
  if (shared.error) return std::move(*shared.error);
  CorpusWords all = std::move(counters.front().result);
  for (size_t i = 1; i < counters.size(); ++i) {
    CorpusWords one = std::move(counters[i].result);
    all.words.add(one.words);
    all.num_examples += one.num_examples;
    all.num_words += one.num_words;
    all.text_bytes += one.text_bytes;
    all.skipped.add(one.skipped);
  }
  all.skipped.add(shared.skipped);
  return all;
}

}  // namespace plimsoll::tokenizer
