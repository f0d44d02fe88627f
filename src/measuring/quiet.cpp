#include "measuring/quiet.h"

#include <algorithm>
#include <utility>

namespace plimsoll::measuring {
namespace {

constexpr double kMostInterruptions = 80, kLeastSeconds = 0.25;

}  // namespace

bool is_quiet(double cpu_seconds, int64_t interruptions) {
  return cpu_seconds < kLeastSeconds || static_cast<double>(interruptions) < kMostInterruptions * cpu_seconds;
}

Quiet::Quiet(Counted counted) : counted_(std::move(counted)), start_(counted_()) {}

double Quiet::interruptions() const { return static_cast<double>(count()) / std::max(seconds(), 1e-3); }
bool Quiet::holds() const { return is_quiet(seconds(), count()); }

double Quiet::seconds() const { return cpu_seconds(counted_()) - cpu_seconds(start_); }
int64_t Quiet::count() const { return counted_().ru_nivcsw - start_.ru_nivcsw; }

}  // namespace plimsoll::measuring
