// Errors are kept with the number of their batch and record: of several the earliest counts.
#include "tokenizer_training/corpus_words.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "base/thread.h"
#include "corpora/batch_memory.h"
#include "corpora/json_members.h"
#include "corpora/parse_example.h"
#include "corpora/record_reader.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizer_training {
namespace {

constexpr size_t kBatchBytes = size_t{512} << 10;  // some ms of work
constexpr size_t kBatchRecords = 4096;

/// Where an error stands: its batch, and in it the number of records before it.
using Place = std::pair<size_t, size_t>;

/// What the threads share; everything but the text's size under the mutex.
struct Shared {
  corpora::ExampleReader& reader;
  int64_t most_bytes_under_way = 0;
  std::mutex mutex = {};
  std::condition_variable changed = {};  // less is under way, or the end
  int64_t bytes_under_way = 0;
  size_t num_batches = 0;
  bool ended = false;
  std::optional<Error> error = {};
  Place error_place = {};
  std::atomic<int64_t> text_bytes{0};
  corpora::SkipCounts skipped = {};

  void fail(Error what, Place place) {
    ended = true;
    if (error && error_place <= place) return;
    error = std::move(what);
    error_place = place;
  }
};

class Counter final : public tokenizers::WordSink {
 public:
  Counter(const tokenizers::Normalizer& normalizer, const tokenizers::PreTokenizer& pre_tokenizer)
      : normalizer_(normalizer), pre_tokenizer_(pre_tokenizer) {}
  void word(std::string_view word, const char*) override {
    result.words.add(word);
    ++result.num_words;
  }

  /// Reads a batch and counts its words; false where there is none, or memory is refused.
  bool work(Shared& shared) {
    Result<bool> more = caught([&]() -> Result<bool> { return count_batch(shared); });
    if (more) return *more;
    const std::lock_guard lock(shared.mutex);
    shared.fail(std::move(more).error(), {});
    shared.changed.notify_all();
    return false;
  }

  CorpusWords result = {};

 private:
  bool count_batch(Shared& shared) {
    Place place;
    if (!read(shared, place.first)) return false;
    std::optional<Error> error = count_records(shared.reader, place.second);
    const auto size = static_cast<int64_t>(bytes_.size());
    result.text_bytes += size;
    shared.text_bytes += size;
    const bool good = !error;
    tidy();
    {
      const std::lock_guard lock(shared.mutex);
      shared.bytes_under_way -= size;
      if (error) shared.fail(std::move(*error), place);
    }
    shared.changed.notify_all();
    return good;
  }

  bool read(Shared& shared, size_t& number) {
    std::unique_lock lock(shared.mutex);
    shared.changed.wait(lock,
                        [&] { return shared.ended || shared.bytes_under_way < shared.most_bytes_under_way; });
    number = shared.num_batches++;
    while (!shared.ended && bytes_.size() < kBatchBytes && records_.size() < kBatchRecords) {
      corpora::Record record;
      Result<bool> found = shared.reader.records().next(bytes_, record);
      if (!found)
        shared.fail(std::move(found).error(), {number, records_.size()});
      else if (*found)
        records_.push_back(record);
      else
        shared.ended = true;
    }
    shared.skipped.add(shared.reader.records().take_skipped());
    if (shared.ended) shared.changed.notify_all();
    if (records_.empty()) return false;
    shared.bytes_under_way += static_cast<int64_t>(bytes_.size());
    return true;
  }

  /// The error at which it stopped, behind `num_done` records.
  std::optional<Error> count_records(const corpora::ExampleReader& reader, size_t& num_done) {
    const corpora::ReaderOptions& options = reader.options();
    for (num_done = 0; num_done < records_.size(); ++num_done) {
      const corpora::Record& record = records_[num_done];
      result.invalid.look_at(std::string_view(bytes_).substr(record.begin, record.size),
                             reader.files()[record.file], record.place());
      std::optional<corpora::BadExample> bad = corpora::to_example(
          bytes_, record, reader.files(), options.text_key, example_, corpora::Prefers::kText);
      if (bad && (options.on_error == corpora::OnError::kFail || bad->error.code != ErrorCode::kBadData))
        return std::move(bad->error);
      if (bad) {
        result.skipped.add(bad->reason);
        continue;
      }
      take();
      result.num_examples += record.continues ? 0 : 1;
    }
    return std::nullopt;
  }

  void tidy() {
    for (std::string* one : {&bytes_, &example_.text, &example_.completion, &example_.record,
                             &example_.prompt_record, &repaired_, &normalized_})
      corpora::empty(*one);
    records_.clear();
  }

  void take() {
    switch (example_.kind) {
      case corpora::ExampleKind::kText:
        return count(example_.text, example_.first);
      case corpora::ExampleKind::kCompletion:
        count(example_.text, true);
        return count(example_.completion, true);
      case corpora::ExampleKind::kMessages:
        return take_messages();
      case corpora::ExampleKind::kTokens:
        return;  // there is no text in it
    }
  }

  /// The members are found in the text: a tree of it would be many times its size.
  void take_messages() {
    static constexpr std::string_view kMessages[] = {"messages"}, kContent[] = {"content"},
                                      kText[] = {"text"};
    corpora::ListItems messages(corpora::find(corpora::members_of(example_.record, kMessages), "messages"));
    for (std::string_view message; messages.next(message);) {
      const corpora::Members members = corpora::members_of(message, kContent);
      const std::string_view content = corpora::find(members, "content");
      if (corpora::is_string(content)) count(corpora::unescaped(content), true);
      if (!corpora::is_list(content)) continue;
      corpora::ListItems parts(content);
      for (std::string_view part; parts.next(part);) {
        if (!corpora::is_object(part)) continue;
        const corpora::Members part_members = corpora::members_of(part, kText);
        if (const std::string_view value = corpora::find(part_members, "text"); corpora::is_string(value))
          count(corpora::unescaped(value), true);
      }
    }
  }

  void count(std::string_view text, bool first) {
    if (tokenizers::valid_utf8_prefix(text) != text.size()) {
      repaired_.clear();
      tokenizers::append_repaired(text, repaired_);
      text = repaired_;
    }
    bool starts = first;
    const std::string_view normalized = normalizer_.apply(text, normalized_, starts, !first);
    pre_tokenizer_.run(normalized, starts, *this);
  }

  const tokenizers::Normalizer& normalizer_;
  const tokenizers::PreTokenizer& pre_tokenizer_;
  std::string bytes_;
  std::vector<corpora::Record> records_;
  corpora::Example example_;
  std::string repaired_, normalized_;
};

}  // namespace

Result<CorpusWords> count_words(corpora::ExampleReader& reader, const tokenizers::Normalizer& normalizer,
                                const tokenizers::PreTokenizer& pre_tokenizer, int num_threads,
                                const std::function<bool(int64_t text_bytes)>& glance) {
  num_threads = std::max(num_threads, 1);
  // Each thread has room for a batch; more than that only long records take.
  Shared shared{
      .reader = reader,
      .most_bytes_under_way = corpora::kMostBytesUnderWay + num_threads * static_cast<int64_t>(kBatchBytes)};
  std::vector<Counter> counters;
  for (int i = 0; i < num_threads; ++i) counters.emplace_back(normalizer, pre_tokenizer);
  bool stopped = false;
  {
    std::vector<Thread> threads;
    std::unique_lock starting(shared.mutex);  // nobody begins before all are there
    for (size_t i = 1; i < counters.size() && !shared.error; ++i) {
      auto started = Thread::start("counting words", [&shared, &counter = counters[i]] {
        while (counter.work(shared)) {
        }
      });
      if (started)
        threads.push_back(std::move(*started));
      else
        shared.fail(std::move(started).error(), {});
    }
    starting.unlock();
    while (!stopped && counters.front().work(shared)) stopped = !glance(shared.text_bytes);
    if (stopped) {
      const std::lock_guard lock(shared.mutex);
      shared.ended = true;
      shared.changed.notify_all();
    }
  }
  if (stopped) return corpora::interrupted();
  if (shared.error) return std::move(*shared.error);
  CorpusWords all = std::move(counters.front().result);
  for (size_t i = 1; i < counters.size(); ++i) {
    CorpusWords one = std::move(counters[i].result);
    all.words.add(one.words);
    all.num_examples += one.num_examples;
    all.num_words += one.num_words;
    all.text_bytes += one.text_bytes;
    all.skipped.add(one.skipped);
    all.invalid.add(one.invalid);
  }
  all.skipped.add(shared.skipped);
  return all;
}

}  // namespace plimsoll::tokenizer_training
