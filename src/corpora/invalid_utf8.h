// Bytes of files that are no UTF-8: read as U+FFFD, and counted, for most of them mean a file in another
// encoding.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::corpora {

class InvalidUtf8 {
 public:
  /// Where a record begins: its line, and the byte of the line (of the file, where `line` is 0), both from 1;
  /// `byte` is 0 where nobody knows.
  struct Place {
    int64_t line = 0;
    int64_t byte = 0;
  };
  /// Counts in a record of the file, or in a piece of a text (where.line is 0).
  void look_at(std::string_view record, const std::string& file, Place where);
  void add(const InvalidUtf8& other);
  /// What there is in all files.
  [[nodiscard]] int64_t num_bytes() const;
  /// A line for each file that has some, by name.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  struct Found {
    int64_t bytes = 0;
    int64_t records = 0;  ///< of a text: its pieces
    Place first = {};
    void add(const Found& other);
  };
  std::map<std::string, Found> by_file_;
};

}  // namespace plimsoll::corpora
