// An answer is a frame, so that a part of it is never taken for the whole:
//
//   bytes of the content, 8 │ their checksum, 8 │ content: a result's text, or an error with all that is in
//   it
#include "cli/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/caught.h"
#include "base/thread.h"
#include "cli/signals.h"

namespace plimsoll::cli {
namespace {

constexpr int kPollMilliseconds = 50;

struct Frame {
  uint64_t bytes = 0, checksum = 0;
};

/// FNV-1a.
uint64_t checksum_of(std::string_view content) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const char c : content) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return sum;
}

void put(std::string& text, std::string_view part) {
  const uint64_t size = part.size();
  text.append(reinterpret_cast<const char*>(&size), sizeof size).append(part);
}

void put(std::string& text, const Error& error) {
  text += static_cast<char>(error.code);
  for (const std::string* part : {&error.what, &error.where, &error.hint}) put(text, *part);
  text += static_cast<char>(error.more.size() > 127 ? 127 : error.more.size());
  for (size_t i = 0; i < error.more.size() && i < 127; ++i) put(text, error.more[i]);
}

/// The content was checked as a whole: it is what `put` wrote.
Error take_error(std::string_view& text) {
  const auto take_byte = [&] {
    const char byte = text.front();
    text.remove_prefix(1);
    return byte;
  };
  Error error{static_cast<ErrorCode>(take_byte()), {}};
  for (std::string* part : {&error.what, &error.where, &error.hint}) {
    uint64_t size = 0;
    std::memcpy(&size, text.data(), sizeof size);
    *part = text.substr(sizeof size, size);
    text.remove_prefix(sizeof size + size);
  }
  for (char left = take_byte(); left > 0; --left) error.more.push_back(take_error(text));
  return error;
}

std::string framed(const Result<std::string>& result) {
  std::string content(1, result ? '+' : '-');
  if (result)
    content += *result;
  else
    put(content, result.error());
  const Frame frame{content.size(), checksum_of(content)};
  return std::string(reinterpret_cast<const char*>(&frame), sizeof frame) + content;
}

/// Nothing where the answer is not whole.
std::optional<Result<std::string>> unframed(std::string_view text) {
  Frame frame;
  if (text.size() <= sizeof frame) return std::nullopt;
  std::memcpy(&frame, text.data(), sizeof frame);
  text.remove_prefix(sizeof frame);
  if (text.size() != frame.bytes || checksum_of(text) != frame.checksum) return std::nullopt;
  const bool succeeded = text.front() == '+';
  text.remove_prefix(1);
  if (succeeded) return Result<std::string>(std::string(text));
  return Result<std::string>(take_error(text));
}

Error no_child(const char* what) {
  return {ErrorCode::kIo, std::string(what) + ": " + std::strerror(errno), {}, "try again"};
}

bool write_all(int output, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(output, text.data(), text.size());
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

[[noreturn]] void be_child(int output, pid_t parent, const std::function<Result<std::string>()>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it was gone before the kernel was asked
  be_told_by_parent();
  if (const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nothing >= 0) ::dup2(nothing, 1);
  const bool told = write_all(output, framed(caught(work)));
  ::_exit(told ? 0 : 1);  // nothing of the parent's is flushed twice
}

/// All that the child writes; a signal of this process is handed on meanwhile. Errors: kIo where it cannot be
/// read.
Result<std::string> answer_of(pid_t child, int input) {
  std::string text;
  bool told = false;
  for (std::array<char, 4096> buffer{};;) {
    pollfd readable{input, POLLIN, 0};
    const int events = ::poll(&readable, 1, kPollMilliseconds);
    if (stop_requested() != 0 && !told) {
      ::kill(child, SIGTERM);
      told = true;
    }
    if (events <= 0) continue;
    const ssize_t n = ::read(input, buffer.data(), buffer.size());
    if (n == 0) return text;
    if (n < 0 && errno != EINTR && errno != EAGAIN)
      return no_child("cannot read the answer of a child process");
    if (n > 0) text.append(buffer.data(), static_cast<size_t>(n));
  }
}

Error no_answer(int status) {
  if (!WIFSIGNALED(status))
    return {ErrorCode::kIo,
            "a child process ended before its answer was complete",
            {},
            "see what it printed, and run again"};
  return {ErrorCode::kIo,
          "a child process was ended by signal " + std::to_string(WTERMSIG(status)),
          {},
          WTERMSIG(status) == SIGKILL ? "memory may have run out: lower runtime.threads" : "run again"};
}

}  // namespace

Result<std::string> in_child_process(const std::function<Result<std::string>()>& work) {
  // The child would have the locks of the other threads as they were held at that moment, for good.
  if (Thread::num_running() > 0) return caught(work);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return no_child("cannot create a pipe to a child process");
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) be_child(ends[1], parent, work);
  ::close(ends[1]);
  if (child < 0) {
    Error refused = no_child("cannot start a child process");
    ::close(ends[0]);
    return refused;
  }
  const Result<std::string> text = answer_of(child, ends[0]);
  ::close(ends[0]);
  if (!text) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text) return text.error();
  if (WIFEXITED(status))
    if (std::optional<Result<std::string>> result = unframed(*text)) return std::move(*result);
  return no_answer(status);
}

}  // namespace plimsoll::cli
