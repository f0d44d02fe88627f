// Rows of CSV as the objects of JSON that they stand for: the first row has the members' names.
#include <fmt/format.h>

#include <algorithm>

#include "corpora/reasons.h"
#include "corpora/record_reader.h"

namespace plimsoll::corpora {

/// Reads a row; false where there is none.
Result<bool> RecordReader::read_row() {
  csv_->reset();
  bool any = false;
  for (bool ended = false; !ended;) {
    PLIMSOLL_ASSIGN(const bool more, fill());
    if (!more) {
      if (!any) return false;
      if (!csv_->finish()) return bad(reason::kNotCsv, std::string(csv_->error()));
      return true;
    }
    any = true;
    int64_t lines = 0;
    at_ += csv_->advance(unread(), ended, lines);
    line_ += lines;
    if (!csv_->error().empty())
      return bad(reason::kNotCsv, fmt::format("the file is no CSV: {}", csv_->error()));
    if (csv_->num_bytes() <= static_cast<size_t>(options_.max_record_bytes)) continue;
    // Where it ends would show behind all of it alone, and quotes may be what is wrong with it.
    return too_long("the row is longer");
  }
  return true;
}

Status RecordReader::take_header() {
  for (size_t i = 0; i < csv_->size(); ++i) {
    std::string name(csv_->field(i));
    if (name.empty())
      return bad(reason::kNotCsv, fmt::format("column {} has no name in the first row", i + 1));
    if (std::find(columns_.begin(), columns_.end(), name) != columns_.end())
      return bad(reason::kNotCsv, fmt::format("the first row has \"{}\" twice", name.substr(0, 60)));
    columns_.push_back(std::move(name));
  }
  return Ok{};
}

Result<RecordReader::Step> RecordReader::next_row(std::string& bytes, Record& record) {
  const int64_t line = line_;
  PLIMSOLL_ASSIGN(const bool more, read_row());
  if (!more) return end_of_records();
  if (csv_->is_blank()) return Step::kAgain;
  if (columns_.empty()) {
    PLIMSOLL_TRY(take_header());
    return Step::kAgain;
  }
  record.line = line;
  if (csv_->size() != columns_.size()) {
    ++num_records_;
    Error error = bad(reason::kNotCsv,
                      fmt::format("the row has {} fields, the first row {}", csv_->size(), columns_.size()));
    error.where = where(line);
    PLIMSOLL_TRY(pass_over(std::move(error), reason::kNotCsv));
    return Step::kAgain;
  }
  append_object(columns_, *csv_, bytes);
  return Step::kRecord;
}

}  // namespace plimsoll::corpora
