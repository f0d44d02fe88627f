// The elements of a JSON list, cut out by their brackets alone; what is between them is looked at later.
#include <algorithm>

#include "corpora/reasons.h"
#include "corpora/record_reader.h"

namespace plimsoll::corpora {
namespace {

/// Follows brackets and quotes through a JSON value, whatever is between them.
class ValueEnd {
 public:
  /// `depth`: brackets that are open already; the value ends with the last of them.
  explicit ValueEnd(int64_t depth = 0) : depth_(depth) {}
  /// Bytes of `text` that belong to the value; `ended` where it ends within them.
  size_t advance(std::string_view text, bool& ended, int64_t& line) {
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      line += c == '\n';
      if (in_string_) {
        if (!escaped_ && c == '"') in_string_ = false;
        escaped_ = !escaped_ && c == '\\';
        if (!in_string_ && depth_ == 0) return ended = true, i + 1;
      } else if (c == '"') {
        in_string_ = true;
      } else if (c == '{' || c == '[') {
        ++depth_;
      } else if (c == '}' || c == ']') {
        if (depth_ == 0) return ended = true, i;
        if (--depth_ == 0) return ended = true, i + 1;
      } else if (depth_ == 0 && c == ',') {
        return ended = true, i;
      }
    }
    return text.size();
  }

 private:
  int64_t depth_;
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace

/// Whether anything follows the blanks. Counts lines.
Result<bool> RecordReader::skip_blanks() {
  for (;;) {
    PLIMSOLL_ASSIGN(const bool more, fill());
    if (!more) return false;
    while (at_ < end_ && is_blank(block_[at_])) line_ += block_[at_++] == '\n';
    if (at_ < end_) return true;
  }
}

/// Goes behind the bracket that the member's list begins with, where the file is an object that has it near
/// its start; else stays where it is.
bool RecordReader::begin_list_member() {
  const std::string_view text = unread().substr(0, kListMemberWithin);
  size_t at = 0;
  const auto blanks = [&] {
    while (at < text.size() && is_blank(text[at])) ++at;
    return at < text.size() ? text[at] : '\0';
  };
  if (blanks() != '{') return false;
  // Bytes of the value that begins there; 0 where it does not end in time.
  const auto value_at = [text](size_t begin) {
    bool ended = false;
    int64_t lines = 0;
    const size_t count = ValueEnd().advance(text.substr(begin), ended, lines);
    return ended ? count : 0;
  };
  for (++at;; ++at) {
    if (blanks() != '"') return false;
    const size_t name = at;
    at += value_at(name);
    if (at == name || blanks() != ':') return false;
    const bool is_it = text.substr(name).starts_with('"' + options_.list_member + '"');
    ++at;
    if (is_it) break;
    blanks();
    const size_t count = value_at(at);
    at += count;
    if (count == 0 || blanks() != ',') return false;
  }
  if (blanks() != '[') return false;
  line_ = std::max<int64_t>(line_, 1) + std::ranges::count(text.substr(0, at), '\n');
  at_ += at + 1;
  return true;
}

/// What stands behind the member's list: other members, and the end of the object, which nothing follows.
Result<RecordReader::Step> RecordReader::end_of_object() {
  ValueEnd object(/*depth=*/1);
  for (bool ended = false; !ended;) {
    PLIMSOLL_ASSIGN(const bool more, fill());
    if (!more) return bad(reason::kNotJson, "the file ends before its object does");
    at_ += object.advance(unread(), ended, line_);
  }
  PLIMSOLL_ASSIGN(const bool more, skip_blanks());
  if (more) return bad(reason::kNotJson, "something follows the end of the object");
  return end_of_records();
}

Result<RecordReader::Step> RecordReader::end_of_list() {
  ++at_;
  if (is_member_) return end_of_object();
  PLIMSOLL_ASSIGN(const bool more, skip_blanks());
  if (more) return bad(reason::kNotJson, "something follows the end of the list");
  return end_of_records();
}

Result<RecordReader::Step> RecordReader::next_element(std::string& bytes, Record& record) {
  const auto cut_off = [this] { return bad(reason::kNotJson, "the file ends before its list does"); };
  PLIMSOLL_ASSIGN(bool more, skip_blanks());
  if (!more) return cut_off();
  if (block_[at_] == ']') return end_of_list();
  if (num_records_ > 0) {
    if (block_[at_] != ',') return bad(reason::kNotJson, "expected ',' or ']' between the list's elements");
    ++at_;
    PLIMSOLL_ASSIGN(more, skip_blanks());
    if (!more) return cut_off();
  }
  record.line = line_;
  PLIMSOLL_ASSIGN(const bool fits, append_element(bytes));
  if (fits) return Step::kRecord;
  ++num_records_;
  Error error = too_long("the element is longer");
  error.where = where(record.line);
  PLIMSOLL_TRY(pass_over(std::move(error), reason::kTooLong));
  return Step::kAgain;
}

/// False where the element is too long; it is passed over then.
Result<bool> RecordReader::append_element(std::string& bytes) {
  const size_t begin = bytes.size();
  ValueEnd value;
  bool fits = true;
  for (bool ended = false; !ended;) {
    PLIMSOLL_ASSIGN(const bool more, fill());
    if (!more) return bad(reason::kNotJson, "the file ends within an element of its list");
    const std::string_view rest = unread();
    const size_t count = value.advance(rest, ended, line_);
    fits = fits && append_within_limit(bytes, begin, rest.substr(0, count));
    at_ += count;
  }
  return fits;
}

}  // namespace plimsoll::corpora
