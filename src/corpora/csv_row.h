// A row of CSV, as RFC 4180 has it: fields between commas, quoted where they hold commas, quotes (written
// twice) or line breaks. Lines end with \n or \r\n. What the RFC does not allow - a quote within a field that
// is not quoted, something behind a closing quote, a lone \r - is an error, for whoever wrote it meant
// something else than what would be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::corpora {

class CsvRow {
 public:
  explicit CsvRow(char separator) : separator_(separator) {}

  /// Takes bytes up to the end of the row, and returns how many; `ended` where it ends within them. Counts
  /// line breaks into `lines`. An error is in `error()`; nothing is taken behind it.
  size_t advance(std::string_view bytes, bool& ended, int64_t& lines);
  /// The file ends here. False where it ends within quotes.
  bool finish();
  /// Empties it for the next row.
  void reset();

  /// Empty: none.
  [[nodiscard]] std::string_view error() const { return error_; }
  [[nodiscard]] size_t size() const { return ends_.size(); }
  [[nodiscard]] std::string_view field(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }
  /// An empty line.
  [[nodiscard]] bool is_blank() const { return ends_.size() == 1 && text_.empty() && !any_quotes_; }
  /// What the row takes so far.
  [[nodiscard]] size_t num_bytes() const { return text_.size() + ends_.size() * sizeof(size_t); }

 private:
  enum class State : uint8_t { kFieldStart, kPlain, kQuoted, kClosed, kReturn };
  bool step(char c, int64_t& lines);
  void end_field();
  char separator_;
  State state_ = State::kFieldStart;
  bool any_quotes_ = false, ended_ = false;
  std::string text_;  ///< the fields, one behind the other
  std::vector<size_t> ends_;
  std::string_view error_;
};

/// Appends the row as a JSON object with the header's names. Fields are strings; those under names that hold
/// something else in JSON lines (messages, conversations, tools, history, input_ids and what comes with them,
/// label, …) are the JSON that they hold, where they hold some, and are left out where they are empty, as
/// text_pair is. `row` has as many fields as names.
void append_object(const std::vector<std::string>& names, const CsvRow& row, std::string& out);

}  // namespace plimsoll::corpora
