#include "io/line_reader.h"

#include <algorithm>

namespace plimsoll::io {
namespace {

constexpr int64_t kPieceBytes = 64 << 10;

}  // namespace

Result<LineReader> LineReader::open(const std::string& path) {
  PLIMSOLL_ASSIGN(ReadFile file, ReadFile::open(path));
  return LineReader(std::move(file));
}

Result<bool> LineReader::more() {
  const int64_t bytes = std::min(kPieceBytes, file_.size_bytes() - read_);
  if (bytes <= 0) return false;
  buffer_.erase(0, at_);
  at_ = 0;
  const size_t old = buffer_.size();
  buffer_.resize(old + static_cast<size_t>(bytes));
  PLIMSOLL_TRY(file_.read_at(read_, std::as_writable_bytes(std::span(buffer_)).subspan(old)));
  read_ += bytes;
  return true;
}

Result<std::optional<LineReader::Line>> LineReader::next() {
  size_t searched = at_;
  bool too_long = false;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      const std::string_view text = std::string_view(buffer_).substr(at_, end - at_);
      const int64_t begin = read_ - static_cast<int64_t>(buffer_.size() - at_);
      at_ = end + 1;
      searched = at_;
      if (!too_long) return std::optional(Line{text, begin, true});
      too_long = false;
      continue;
    }
    if (static_cast<int64_t>(buffer_.size() - at_) > kMostBytes) too_long = true, at_ = buffer_.size();
    searched = buffer_.size() - at_;
    PLIMSOLL_ASSIGN(const bool read, more());
    if (read) continue;
    if (at_ == buffer_.size()) return std::optional<Line>();
    const std::string_view rest = std::string_view(buffer_).substr(at_);
    const int64_t begin = read_ - static_cast<int64_t>(rest.size());
    at_ = buffer_.size();
    if (too_long) return std::optional<Line>();
    return std::optional(Line{rest, begin, false});
  }
}

}  // namespace plimsoll::io
