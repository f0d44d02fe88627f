#include "corpora/invalid_utf8.h"

#include <fmt/format.h>

#include <tuple>

#include "tokenizers/unicode.h"

namespace plimsoll::corpora {

void InvalidUtf8::look_at(std::string_view record, const std::string& file, Place where) {
  size_t at = tokenizers::valid_utf8_prefix(record);
  if (at == record.size()) return;
  Found found{.records = 1, .first = where};
  if (where.byte > 0) found.first.byte += static_cast<int64_t>(at);
  while (at < record.size()) {
    const size_t invalid = tokenizers::invalid_utf8_prefix(record.substr(at));
    found.bytes += static_cast<int64_t>(invalid);
    at += invalid;
    at += tokenizers::valid_utf8_prefix(record.substr(at));
  }
  by_file_[file].add(found);
}

void InvalidUtf8::Found::add(const Found& other) {
  const bool is_earlier = std::tie(other.first.line, other.first.byte) < std::tie(first.line, first.byte);
  if (records == 0 || is_earlier) first = other.first;
  bytes += other.bytes;
  records += other.records;
}

void InvalidUtf8::add(const InvalidUtf8& other) {
  for (const auto& [file, found] : other.by_file_) by_file_[file].add(found);
}

int64_t InvalidUtf8::num_bytes() const {
  int64_t bytes = 0;
  for (const auto& [file, found] : by_file_) bytes += found.bytes;
  return bytes;
}

std::vector<std::string> InvalidUtf8::lines() const {
  std::vector<std::string> lines;
  for (const auto& [file, found] : by_file_) {
    const bool is_text = found.first.line == 0;
    std::string what = fmt::format("{} byte{}", found.bytes, found.bytes == 1 ? "" : "s");
    if (!is_text) what += fmt::format(" in {} example{}", found.records, found.records == 1 ? "" : "s");
    std::string place = is_text ? std::string() : fmt::format("line {}", found.first.line);
    if (found.first.byte > 0) place += fmt::format("{}byte {}", place.empty() ? "" : ", ", found.first.byte);
    lines.push_back(fmt::format(
        "{}: {} {} not valid UTF-8 (the first: {}) and {} read as U+FFFD; a file in another encoding must be "
        "converted first, such as iconv -f LATIN1 -t UTF-8",
        file, what, found.bytes == 1 ? "is" : "are", place, found.bytes == 1 ? "is" : "are"));
  }
  return lines;
}

}  // namespace plimsoll::corpora
