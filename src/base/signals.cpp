#include "base/signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace plimsoll {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT};
std::atomic<int> requested{0};
std::atomic<bool> quiet{false};
static_assert(std::atomic<int>::is_always_lock_free);  // or a handler must not touch it
struct sigaction previous[4];

extern "C" void on_stop_signal(int signal) {
  const int saved = errno;
  int none = 0;
  if (!requested.compare_exchange_strong(none, signal)) ::_exit(128 + signal);
  constexpr std::string_view kTerm =
      "SIGTERM: stopping as soon as that is safe; a second one leaves at once\n";
  constexpr std::string_view kInt = "SIGINT: stopping as soon as that is safe; a second one leaves at once\n";
  const std::string_view line = signal == SIGINT ? kInt : kTerm;
  if (!quiet) (void)!::write(STDERR_FILENO, line.data(), line.size());
  errno = saved;
}

}  // namespace

StopSignals::StopSignals(bool outlive_readers) : ignores_pipe_(outlive_readers) {
  requested = 0;
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;  // a write to a slow pipe goes on
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 2; ++i) ::sigaction(kSignals[i], &action, &previous[i]);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &action, &previous[2]);
  if (ignores_pipe_) ::sigaction(SIGPIPE, &action, &previous[3]);
}

StopSignals::~StopSignals() {
  for (int i = 0; i < 2; ++i) ::sigaction(kSignals[i], &previous[i], nullptr);
  ::sigaction(SIGXFSZ, &previous[2], nullptr);
  if (ignores_pipe_) ::sigaction(SIGPIPE, &previous[3], nullptr);
}

void be_told_by_parent() {
  quiet = true;
  ::signal(SIGINT, SIG_IGN);
}

int stop_requested() { return requested.load(std::memory_order_relaxed); }

std::string_view signal_name(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

}  // namespace plimsoll
