#include "base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/signals.h"

namespace plimsoll {
namespace {

constexpr int kPollMilliseconds = 50;

/// A letter, and for an error its code; then three texts that end with a zero byte.
std::string packed(const Result<std::string>& result) {
  if (result) return "+" + *result;
  const Error& e = result.error();
  std::string text = "-";
  text += static_cast<char>('0' + static_cast<int>(e.code));
  for (const std::string* part : {&e.what, &e.where, &e.hint}) text.append(part->c_str()) += '\0';
  return text;
}

Result<std::string> unpacked(const std::string& text) {
  if (text[0] == '+') return text.substr(1);
  Error error{static_cast<ErrorCode>(text[1] - '0'), {}};
  size_t at = 2;
  for (std::string* part : {&error.what, &error.where, &error.hint}) {
    *part = text.c_str() + at;
    at += part->size() + 1;
  }
  return error;
}

Error no_child(const char* what) {
  return {ErrorCode::kIo, std::string(what) + ": " + std::strerror(errno), {}, "try again"};
}

[[noreturn]] void be_child(int output, const std::function<Result<std::string>()>& work) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  be_told_by_parent();
  if (const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nothing >= 0) ::dup2(nothing, 1);
  const std::string text = packed(work());
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(output, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) break;
    if (n > 0) at += static_cast<size_t>(n);
  }
  ::_exit(0);  // nothing of the parent's is flushed twice
}

}  // namespace

Result<std::string> in_child_process(const std::function<Result<std::string>()>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return no_child("no pipe to a process of its own");
  const pid_t child = ::fork();
  if (child == 0) be_child(ends[1], work);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return no_child("no process of its own");
  }
  std::string text;
  bool told = false;
  for (std::array<char, 4096> buffer{};;) {
    pollfd readable{ends[0], POLLIN, 0};
    const int events = ::poll(&readable, 1, kPollMilliseconds);
    if (stop_requested() != 0 && !told) {
      ::kill(child, SIGTERM);
      told = true;
    }
    if (events <= 0) continue;
    const ssize_t n = ::read(ends[0], buffer.data(), buffer.size());
    if (n == 0 || (n < 0 && errno != EINTR)) break;
    if (n > 0) text.append(buffer.data(), static_cast<size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && text.size() >= 2) return unpacked(text);
  if (WIFEXITED(status) && text == "+") return std::string();
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return Error{ErrorCode::kIo,
               "the process that prepares the data was ended by signal " + std::to_string(signal),
               {},
               signal == SIGKILL ? "memory may have run out: lower runtime.threads" : "run again"};
}

}  // namespace plimsoll
