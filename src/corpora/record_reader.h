// Files cut into records, not yet looked into: lines of JSON, elements of a JSON list, rows of CSV, pieces of
// text.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "corpora/csv_row.h"
#include "corpora/example_reader.h"
#include "corpora/input_stream.h"
#include "corpora/invalid_utf8.h"

namespace plimsoll::corpora {

/// Whether a file of this name holds rows, each an object of JSON: .jsonl, .ndjson, .json, .csv or .tsv,
/// packed or not; .parquet or .arrow.
bool has_rows_by_name(const std::string& path);

/// What ends reading, or what comes of it, where that was asked for.
Error interrupted();

/// A record in the bytes that it was appended to.
struct Record {
  size_t begin = 0;
  size_t size = 0;
  bool is_json = false;
  bool first = true;       ///< of a text: its first piece
  bool continues = false;  ///< of a text: the next record is its next piece
  uint32_t file = 0;       ///< index into files()
  int64_t line = 0;        ///< from 1; 0 for texts
  int64_t byte = 0;        ///< of a text and of a line of JSON: where it begins, from 1; else 0
  [[nodiscard]] InvalidUtf8::Place place() const { return {line, byte}; }
};

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// Reads the files one after the other. One thread at a time, but for bytes_read.
class RecordReader {
 public:
  /// Errors: as ExampleReader::open.
  static Result<std::unique_ptr<RecordReader>> open(std::span<const std::string> paths,
                                                    const ReaderOptions& options);
  ~RecordReader();

  /// Appends the next record to `bytes`; false at the end. Errors: as ExampleReader::next.
  Result<bool> next(std::string& bytes, Record& record);
  /// What was passed over since the last call.
  SkipCounts take_skipped() { return std::exchange(skipped_, {}); }
  /// Asked before each block of a file, on the thread that reads; true ends `next` with kInterrupted, within
  /// a record too. None takes it back.
  void set_stop(std::function<bool()> stop) { stop_ = std::move(stop); }

  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  [[nodiscard]] size_t num_files_begun() const { return next_file_; }
  [[nodiscard]] int64_t bytes_read() const { return bytes_read_.load(std::memory_order_relaxed); }
  [[nodiscard]] int64_t total_bytes() const { return total_bytes_; }
  /// About how many of the files' bytes, as they lie on the disk, the records so far were: what was read
  /// ahead is not among them. By the reading thread.
  [[nodiscard]] int64_t bytes_of_records() const;

 private:
  static constexpr size_t kListMemberWithin = 4096;
  enum class Mode : uint8_t { kText, kLines, kList, kCsv };
  /// What a step has come to: a record, nothing yet, the end of the file.
  enum class Step : uint8_t { kRecord, kAgain, kEnd };

  RecordReader(std::vector<std::string> files, int64_t total_bytes, const ReaderOptions& options);
  Status begin_file();
  void end_file();
  Result<bool> fill();
  void note_read(size_t unpacked);
  Result<Step> step(std::string& bytes, Record& record);
  Result<Step> end_of_records();
  Result<Step> next_line(std::string& bytes, Record& record);
  Result<Step> next_element(std::string& bytes, Record& record);
  Result<Step> next_row(std::string& bytes, Record& record);
  Result<bool> read_row();
  Status take_header();
  Result<Step> next_piece(std::string& bytes, Record& record);
  Result<bool> append_element(std::string& bytes);
  Result<Step> end_of_list();
  bool begin_list_member();
  Result<Step> end_of_object();
  Result<bool> skip_blanks();
  bool append_within_limit(std::string& bytes, size_t begin, std::string_view more) const;
  Status pass_over(Error error, std::string_view reason);
  Error bad(std::string_view reason, std::string what);
  [[nodiscard]] std::string_view unread() const { return {block_.get() + at_, end_ - at_}; }
  Error too_long(std::string_view what);
  [[nodiscard]] std::string where(int64_t line) const;

  std::vector<std::string> files_;
  int64_t total_bytes_;
  ReaderOptions options_;
  SkipCounts skipped_;
  std::function<bool()> stop_;
  std::atomic<int64_t> bytes_read_{0};
  int64_t bytes_of_files_done_ = 0;
  int64_t unpacked_bytes_ = 0;  // of this file, read so far
  size_t next_file_ = 0;

  std::unique_ptr<InputStream> stream_;  // of the file at hand; null between files
  std::unique_ptr<char[]> block_;
  size_t at_ = 0, end_ = 0;
  std::string_view reason_;  // of the failure that a step returns
  Mode mode_ = Mode::kText;
  int64_t line_ = 0;           // kLines: the last one read; kList, kCsv: the one at hand
  bool is_member_ = false;     // kList: the list is a member of the file's object
  int64_t num_records_ = 0;    // of this file
  int64_t text_bytes_ = 0;     // kText: handed out
  bool is_open_text_ = false;  // kText: a piece that continues was handed out
  std::optional<CsvRow> csv_;  // kCsv: the row at hand
  std::vector<std::string> columns_;
  std::string carry_;  // kText: what lies behind the last cut
};

}  // namespace plimsoll::corpora
