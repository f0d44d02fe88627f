#include "generate/line_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace plimsoll::generate {
namespace {

/// How late a signal may be seen that comes right before the wait begins.
constexpr int kPollMilliseconds = 200;

}  // namespace

/// Reads once; a signal leaves things as they are.
Status LineReader::fill() {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&input, 1, kPollMilliseconds) <= 0) return Ok{};
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (got < 0 && errno != EINTR)
    return Error{ErrorCode::kIo, fmt::format("cannot be read: {}", std::strerror(errno)), "standard input"};
  if (got == 0) at_end_ = true;
  if (got > 0) held_.append(buffer.data(), static_cast<size_t>(got));
  return Ok{};
}

bool LineReader::is_ahead() const {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return !held_.empty() || ::poll(&input, 1, 0) > 0;
}

Result<std::optional<std::string>> LineReader::next() {
  size_t end = held_.find('\n');
  while (end == std::string::npos && !at_end_) {
    if (is_asked(stop_)) return std::optional<std::string>();
    if (static_cast<int64_t>(held_.size()) > most_bytes_)
      return Error{ErrorCode::kBadData, fmt::format("a line has more than {} bytes", most_bytes_),
                   "standard input", "a turn and its answer have to fit into --context"};
    const size_t seen = held_.size();
    PLIMSOLL_TRY(fill());
    end = held_.find('\n', seen);
  }
  if (end == std::string::npos && held_.empty()) return std::optional<std::string>();
  std::string line = held_.substr(0, end);
  held_.erase(0, end == std::string::npos ? held_.size() : end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return std::optional<std::string>(std::move(line));
}

}  // namespace plimsoll::generate
