#include "cli/report_signal.h"

#include <atomic>

namespace plimsoll::cli {
namespace {

std::atomic<bool> asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // or a handler must not touch it

extern "C" void on_report_signal(int /*signal*/) { asked.store(true, std::memory_order_relaxed); }

}  // namespace

ReportSignal::ReportSignal() {
  asked = false;
  struct sigaction action = {};
  action.sa_handler = on_report_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGUSR2, &action, &previous_);
}

ReportSignal::~ReportSignal() { ::sigaction(SIGUSR2, &previous_, nullptr); }

bool ReportSignal::take() { return asked.exchange(false, std::memory_order_relaxed); }

}  // namespace plimsoll::cli
