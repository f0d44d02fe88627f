#include "base/duration.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace plimsoll {

std::string duration_text(double seconds) {
  constexpr int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour, kDaysApart = 2;
  const int64_t s = std::llround(seconds);
  if (s < kMinute) return fmt::format("{}s", s);
  if (s < kHour) return fmt::format("{}m{:02}s", s / kMinute, s % kMinute);
  if (s < kDaysApart * kDay) return fmt::format("{}h{:02}m", s / kHour, s / kMinute % 60);
  return fmt::format("{}d{:02}h", s / kDay, s / kHour % 24);
}

}  // namespace plimsoll
