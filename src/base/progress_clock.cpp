#include "base/progress_clock.h"

#include <algorithm>

#include "base/duration.h"
#include "base/process.h"

namespace plimsoll {

ProgressClock::ProgressClock() : start_seconds_(now_seconds()), shown_seconds_(start_seconds_) {}

bool ProgressClock::is_due(bool rewrites) {
  constexpr double kTerminalSeconds = 0.1, kFileSeconds = 10;
  const double now = now_seconds();
  if (now - shown_seconds_ < (rewrites ? kTerminalSeconds : kFileSeconds)) return false;
  shown_seconds_ = now;
  return true;
}

double ProgressClock::passed_seconds() const { return now_seconds() - start_seconds_; }

std::string ProgressClock::left(double fraction) const {
  return duration_text(passed_seconds() * (1 - fraction) / std::max(fraction, 1e-9)) + " left";
}

}  // namespace plimsoll
