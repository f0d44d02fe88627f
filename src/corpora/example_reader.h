// Files of text, one after the other, as examples: .jsonl line by line, .json (a list of objects, or lines),
// .csv and .tsv row by row (the first names the members), everything else as one document a file, its bytes
// as they are (a byte order mark and \r\n included). Plain, gzip and zstd files are recognised by content.
//
//   files ─► InputStream ─► RecordReader (lines, elements, pieces of text) ─► parse_example ─► Example
//
// Memory is a record and a few buffers, whatever the files hold.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "corpora/example.h"

namespace plimsoll::corpora {

/// Says where a long text may be cut: the largest position in `text` (which starts where the document or the
/// last piece did) at which cutting changes nothing whatever follows; 0 where there is none.
using TextCutter = std::function<size_t(std::string_view text)>;

struct ReaderOptions {
  OnError on_error = OnError::kFail;
  /// The member that holds a line's text; empty: what the line is follows from its members.
  std::string text_key = {};
  /// A .json file that is an object with this member, within its first 4 KiB, is the list that the member
  /// holds, element by element; empty: such a file is one record.
  std::string list_member = {};
  /// A longer line is an error, read past without being kept; so is a text of this size without a cut.
  int64_t max_record_bytes = int64_t{64} << 20;
  /// With `cut`, a text file comes in pieces of about this size; without, whole.
  int64_t piece_bytes = int64_t{256} << 10;
  TextCutter cut = {};
};

class RecordReader;

/// Reads examples in the order of the files. One thread at a time.
class ExampleReader {
 public:
  /// `paths`: files or globs (each expanded and sorted). All are opened once here, so that a missing file is
  /// no surprise later. Errors: kBadData (missing files, a pattern without a match, a file of tokens), kIo.
  static Result<std::unique_ptr<ExampleReader>> open(std::span<const std::string> paths,
                                                     ReaderOptions options);
  ~ExampleReader();

  /// The next example into `example`, whose memory is used again; false at the end.
  /// Errors: kBadData that names file and line (with OnError::kSkip those are counted instead), kIo.
  Result<bool> next(Example& example);

  [[nodiscard]] const SkipCounts& skipped() const { return skipped_; }
  [[nodiscard]] const std::vector<std::string>& files() const;
  /// Whether any file has rows of JSON or CSV, by its name: texts alone have no loss mask.
  [[nodiscard]] bool has_json() const;
  /// Bytes of the files read so far and in all, as they lie on the disk: for progress. May be called from
  /// any thread.
  [[nodiscard]] int64_t bytes_read() const;
  [[nodiscard]] int64_t total_bytes() const;
  [[nodiscard]] const ReaderOptions& options() const { return options_; }
  /// The stage below, for whoever parses on several threads (tokenize_files).
  [[nodiscard]] RecordReader& records() { return *records_; }

 private:
  ExampleReader(ReaderOptions options, std::unique_ptr<RecordReader> records);
  ReaderOptions options_;
  std::unique_ptr<RecordReader> records_;
  std::string bytes_;  // the record at hand
  SkipCounts skipped_;
};

}  // namespace plimsoll::corpora
