#include "measuring/quiet.h"

#include <sys/resource.h>

#include <algorithm>

namespace plimsoll::measuring {
namespace {

constexpr double kMostInterruptions = 80, kLeastSeconds = 0.25;

}  // namespace

Quiet::Quiet() : start_(use()) {}

double Quiet::interruptions() const {
  const Use u = since();
  return u.interruptions / std::max(u.seconds, 1e-3);
}

bool Quiet::holds() const { return since().seconds < kLeastSeconds || interruptions() < kMostInterruptions; }

Quiet::Use Quiet::use() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime), static_cast<double>(usage.ru_nivcsw)};
}

Quiet::Use Quiet::since() const {
  const Use now = use();
  return {now.seconds - start_.seconds, now.interruptions - start_.interruptions};
}

}  // namespace plimsoll::measuring
