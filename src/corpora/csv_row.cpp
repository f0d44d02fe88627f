#include "corpora/csv_row.h"

#include <algorithm>
#include <array>

#include "corpora/batch_memory.h"
#include "corpora/json_members.h"
#include "corpora/json_scan.h"

namespace plimsoll::corpora {
namespace {

constexpr std::array<std::string_view, 17> kOfJson = {
    "messages",        "conversations",  "tools",         "documents",   "chat_template_kwargs", "history",
    "input_ids",       "labels",         "label",         "seq_lengths", "position_ids",         "cu_seqlens",
    "completion_mask", "attention_mask", "cu_seq_lens_q", "seq_idx",     "assistant_masks"};

/// Whether the field is a list, an object or a number of JSON.
bool holds_json(std::string_view field) {
  JsonScanner scanner(field);
  std::string_view value;
  if (!scanner.value(value) || !scanner.expect_end()) return false;
  return is_list(value) || is_object(value) || value[0] == '-' || (value[0] >= '0' && value[0] <= '9');
}

}  // namespace

void CsvRow::reset() {
  state_ = State::kFieldStart;
  any_quotes_ = ended_ = false;
  empty(text_);
  empty(ends_);
  error_ = {};
}

void CsvRow::end_field() {
  ends_.push_back(text_.size());
  state_ = State::kFieldStart;
}

/// Outside of what can be appended as it is. False: an error.
bool CsvRow::step(char c, int64_t& lines) {
  const auto fail = [this](std::string_view why) { return error_ = why, false; };
  if (state_ == State::kQuoted) {  // c is a quote
    state_ = State::kClosed;
    return true;
  }
  if (state_ == State::kClosed && c == '"') {
    text_ += c;
    state_ = State::kQuoted;
    return true;
  }
  if (state_ == State::kReturn && c != '\n') return fail("a carriage return stands alone");
  if (c == separator_) {
    end_field();
  } else if (c == '\n') {
    ++lines;
    end_field();
    ended_ = true;
  } else if (c == '\r') {
    state_ = State::kReturn;
  } else if (state_ == State::kClosed) {
    return fail("something follows a closing quote");
  } else if (c == '"' && state_ != State::kFieldStart) {
    return fail("a quote stands in a field that is not quoted");
  } else if (c == '"') {
    state_ = State::kQuoted;
    any_quotes_ = true;
  } else {
    text_ += c;
    state_ = State::kPlain;
  }
  return true;
}

size_t CsvRow::advance(std::string_view bytes, bool& ended, int64_t& lines) {
  const char plain_ends[] = {separator_, '"', '\r', '\n'};
  size_t at = 0;
  while (at < bytes.size() && !ended_ && error_.empty()) {
    const std::string_view rest = bytes.substr(at);
    size_t run = 0;
    if (state_ == State::kQuoted)
      run = std::min(rest.find('"'), rest.size());
    else if (state_ == State::kPlain)
      run = std::min(rest.find_first_of(std::string_view(plain_ends, 4)), rest.size());
    if (run > 0) {
      if (state_ == State::kQuoted) lines += std::count(rest.begin(), rest.begin() + run, '\n');
      text_.append(rest.substr(0, run));
      at += run;
    } else if (step(bytes[at], lines)) {
      ++at;
    }
  }
  ended = ended_;
  return at;
}

bool CsvRow::finish() {
  if (state_ == State::kQuoted) return error_ = "the file ends within quotes", false;
  if (state_ == State::kReturn) return error_ = "a carriage return stands alone", false;
  end_field();
  ended_ = true;
  return true;
}

void append_object(const std::vector<std::string>& names, const CsvRow& row, std::string& out) {
  out += '{';
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string_view field = row.field(i);
    const bool of_json = std::find(kOfJson.begin(), kOfJson.end(), names[i]) != kOfJson.end();
    if (field.empty() && (of_json || names[i] == "text_pair")) continue;
    if (out.back() != '{') out += ", ";
    append_quoted(names[i], out);
    out += ": ";
    of_json&& holds_json(field) ? void(out.append(field)) : append_quoted(field, out);
  }
  out += '}';
}

}  // namespace plimsoll::corpora
