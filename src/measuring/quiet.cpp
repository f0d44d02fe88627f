#include "measuring/quiet.h"

#include <algorithm>

namespace plimsoll::measuring {
namespace {

constexpr double kMostInterruptions = 80, kLeastSeconds = 0.25;

}  // namespace

bool is_quiet(double cpu_seconds, int64_t interruptions) {
  return cpu_seconds < kLeastSeconds || static_cast<double>(interruptions) < kMostInterruptions * cpu_seconds;
}

double Quiet::interruptions() const { return static_cast<double>(count()) / std::max(seconds(), 1e-3); }
bool Quiet::holds() const { return is_quiet(seconds(), count()); }

double Quiet::seconds() const { return cpu_seconds(resource_use()) - cpu_seconds(start_); }
int64_t Quiet::count() const { return resource_use().ru_nivcsw - start_.ru_nivcsw; }

}  // namespace plimsoll::measuring
