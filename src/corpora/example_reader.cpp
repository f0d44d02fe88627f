// Records looked into one by one; bad ones are errors or counted.
#include "corpora/example_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "corpora/parse_example.h"
#include "corpora/record_reader.h"

namespace plimsoll::corpora {

std::string place_of(const std::string& file, int64_t line) {
  return line > 0 ? fmt::format("{}: line {}", file, line) : file;
}

void SkipCounts::add(std::string_view reason, int64_t count) {
  const auto at = by_reason.find(reason);
  if (at != by_reason.end())
    at->second += count;
  else
    by_reason.emplace(reason, count);
}

void SkipCounts::add(const SkipCounts& other) {
  for (const auto& [reason, count] : other.by_reason) add(reason, count);
}

int64_t SkipCounts::total() const {
  int64_t sum = 0;
  for (const auto& [reason, count] : by_reason) sum += count;
  return sum;
}

ExampleReader::ExampleReader(ReaderOptions options, std::unique_ptr<RecordReader> records)
    : options_(std::move(options)), records_(std::move(records)) {}

ExampleReader::~ExampleReader() = default;

Result<std::unique_ptr<ExampleReader>> ExampleReader::open(std::span<const std::string> paths,
                                                           ReaderOptions options) {
  PLIMSOLL_ASSIGN(auto records, RecordReader::open(paths, options));
  return std::unique_ptr<ExampleReader>(new ExampleReader(std::move(options), std::move(records)));
}

Result<bool> ExampleReader::next(Example& example) {
  for (;;) {
    bytes_.clear();
    Record record;
    PLIMSOLL_ASSIGN(const bool more, records_->next(bytes_, record));
    skipped_.add(records_->take_skipped());
    if (!more) return false;
    std::optional<BadExample> bad = to_example(bytes_, record, files(), options_.text_key, example);
    if (!bad) return true;
    if (options_.on_error == OnError::kFail) return std::move(bad->error);
    skipped_.add(bad->reason);
  }
}

const std::vector<std::string>& ExampleReader::files() const { return records_->files(); }
bool ExampleReader::has_json() const {
  return std::any_of(files().begin(), files().end(), [](const auto& file) { return has_rows_by_name(file); });
}
int64_t ExampleReader::bytes_read() const { return records_->bytes_read(); }
int64_t ExampleReader::total_bytes() const { return records_->total_bytes(); }

}  // namespace plimsoll::corpora
