#include "cli/signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace plimsoll::cli {
namespace {

struct StopSignal {
  int number;
  const char* name;
  const char* line;
};
constexpr std::array kStop = {
    StopSignal{SIGTERM, "SIGTERM", "SIGTERM: stopping as soon as that is safe; a second one exits at once\n"},
    StopSignal{SIGINT, "SIGINT", "SIGINT: stopping as soon as that is safe; a second one exits at once\n"},
    StopSignal{SIGHUP, "SIGHUP", "SIGHUP: stopping as soon as that is safe; a second one exits at once\n"},
    StopSignal{SIGUSR1, "SIGUSR1",
               "SIGUSR1: stopping as soon as that is safe; a second one exits at once\n"}};

/// A terminal that goes is told by the shell and by the kernel, one after the other.
constexpr int64_t kSameHangupNanoseconds = 1'000'000'000;

std::atomic<int> requested{0};
std::atomic<int64_t> requested_at{0};
std::atomic<bool> quiet{false}, on_terminal{false};
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);  // or a handler must not touch them
std::array<struct sigaction, kStop.size()> previous;
struct sigaction previous_xfsz, previous_pipe;

const StopSignal& stop_signal(int number) {
  for (const StopSignal& s : kStop)
    if (s.number == number) return s;
  return kStop[0];
}

int64_t now() {
  struct timespec t = {};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

extern "C" void on_stop_signal(int signal) {
  const int saved = errno;
  int first = 0;
  if (requested.compare_exchange_strong(first, signal)) {
    requested_at = now();
    const char* line = stop_signal(signal).line;
    if (!quiet && on_terminal) (void)!::write(STDERR_FILENO, "\n", 1);  // behind the "^C" of the terminal
    if (!quiet) (void)!::write(STDERR_FILENO, line, std::strlen(line));
  } else if (signal != SIGHUP || first != SIGHUP || now() - requested_at > kSameHangupNanoseconds) {
    ::_exit(128 + signal);
  }
  errno = saved;
}

}  // namespace

StopSignals::StopSignals(bool outlive_readers) : ignores_pipe_(outlive_readers) {
  requested = 0;
  on_terminal = ::isatty(STDERR_FILENO) == 1;
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;  // a write to a slow pipe goes on
  sigemptyset(&action.sa_mask);
  // The handler is not interrupted by another of them: what it reads of the first one is then written.
  for (const StopSignal& s : kStop) sigaddset(&action.sa_mask, s.number);
  for (size_t i = 0; i < kStop.size(); ++i) {
    ::sigaction(kStop[i].number, &action, &previous[i]);
    const bool nohup = kStop[i].number == SIGHUP && previous[i].sa_handler == SIG_IGN;
    if (nohup) ::sigaction(SIGHUP, &previous[i], nullptr);  // who starts it so wants it to go on
  }
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &action, &previous_xfsz);
  if (ignores_pipe_) ::sigaction(SIGPIPE, &action, &previous_pipe);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kStop.size(); ++i) ::sigaction(kStop[i].number, &previous[i], nullptr);
  ::sigaction(SIGXFSZ, &previous_xfsz, nullptr);
  if (ignores_pipe_) ::sigaction(SIGPIPE, &previous_pipe, nullptr);
}

void be_told_by_parent() {
  quiet = true;
  for (const int signal : {SIGINT, SIGHUP, SIGUSR1}) ::signal(signal, SIG_IGN);
}

int stop_requested() { return requested.load(std::memory_order_relaxed); }

std::string_view stop_reason() {
  const int signal = stop_requested();
  return signal == 0 ? std::string_view() : signal_name(signal);
}

void forget_stop_request() { requested = 0; }

std::string_view signal_name(int signal) { return stop_signal(signal).name; }

}  // namespace plimsoll::cli
