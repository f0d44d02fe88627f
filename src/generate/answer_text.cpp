#include "generate/answer_text.h"

#include <algorithm>
#include <utility>

namespace plimsoll::generate {
namespace {

/// Bytes at the end of `text` that begin `stop` and are not all of it.
size_t begun_bytes(std::string_view text, std::string_view stop) {
  for (size_t size = std::min(text.size(), stop.size() - 1); size > 0; --size)
    if (text.ends_with(stop.substr(0, size))) return size;
  return 0;
}

}  // namespace

std::string StopTexts::push(std::string_view piece) {
  if (found_) return {};
  held_ += piece;
  size_t end = std::string::npos, begun = 0;
  for (const std::string& stop : texts_) {
    end = std::min(end, held_.find(stop));
    begun = std::max(begun, begun_bytes(held_, stop));
  }
  found_ = end != std::string::npos;
  if (!found_) end = held_.size() - begun;
  std::string certain = held_.substr(0, end);
  held_.erase(0, found_ ? held_.size() : end);
  return certain;
}

std::string StopTexts::finish() { return std::exchange(held_, {}); }

std::string AnswerText::finish() {
  std::string rest = stops_.push(stream_.finish());
  return take(std::move(rest) + stops_.finish());
}

std::string AnswerText::take(std::string piece) {
  text_ += piece;
  return piece;
}

}  // namespace plimsoll::generate
