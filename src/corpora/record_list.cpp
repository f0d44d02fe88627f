// The elements of a JSON list, cut out by their brackets alone; what is between them is looked at later.
#include <algorithm>

#include "corpora/reasons.h"
#include "corpora/record_reader.h"

namespace plimsoll::corpora {
namespace {

/// Follows brackets and quotes through a JSON value, whatever is between them.
class ValueEnd {
 public:
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
  int64_t depth_ = 0;
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
  for (++at;; ++at) {
    if (blanks() != '"') return false;
    const size_t begin = at + 1;
    do at = text.find('"', at + 1);
    while (at != text.npos && text[at - 1] == '\\');
    if (at == text.npos) return false;
    const std::string_view name = text.substr(begin, at++ - begin);
    if (blanks() != ':') return false;
    ++at;
    if (name == options_.list_member) break;
    blanks();
    bool ended = false;
    int64_t lines = 0;
    at += ValueEnd().advance(text.substr(at), ended, lines);
    if (!ended || blanks() != ',') return false;
  }
  if (blanks() != '[') return false;
  line_ = std::max<int64_t>(line_, 1) + std::ranges::count(text.substr(0, at), '\n');
  at_ += at + 1;
  return true;
}

/// What stands behind the member's list: other members, and the end of the object, which nothing follows.
Result<RecordReader::Step> RecordReader::end_of_object() {
  int64_t depth = 1;
  bool in_string = false, escaped = false;
  for (;;) {
    PLIMSOLL_ASSIGN(const bool more, fill());
    if (!more && depth > 0) return bad(reason::kNotJson, "the file ends before its object does");
    if (!more) return end_of_records();
    const char c = block_[at_++];
    line_ += c == '\n';
    if (depth == 0 && !is_blank(c)) return bad(reason::kNotJson, "something follows the end of the object");
    if (in_string) {
      if (!escaped && c == '"') in_string = false;
      escaped = !escaped && c == '\\';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
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
