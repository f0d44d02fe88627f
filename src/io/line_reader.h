// A file's lines one after the other, in memory that a line bounds: logs, which may be large or hostile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file.h"

namespace plimsoll::io {

class LineReader {
 public:
  /// Lines that are longer are passed over.
  static constexpr int64_t kMostBytes = 1 << 20;

  struct Line {
    std::string_view text;  ///< without its end; until the next call
    int64_t begin = 0;      ///< in the file
    bool whole = true;      ///< its end is there
  };
  /// Errors: as ReadFile::open.
  static Result<LineReader> open(const std::string& path);
  /// The next line, nothing behind the last. Errors: kIo.
  Result<std::optional<Line>> next();

 private:
  explicit LineReader(ReadFile file) : file_(std::move(file)) {}
  /// Reads on; false at the file's end.
  Result<bool> more();

  ReadFile file_;
  std::string buffer_;
  int64_t read_ = 0;  ///< of the file
  size_t at_ = 0;     ///< of buffer_
};

}  // namespace plimsoll::io
