// Detects that the system swaps a run's memory out while it trains: a step then waits for the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/process.h"

namespace plimsoll::telemetry {

/// Says so once. What was out before the run began does not count.
class SwapWatch {
 public:
  /// `swapped`: bytes of this process in swap; `seconds`: a clock.
  explicit SwapWatch(std::function<int64_t()> swapped, std::function<double()> seconds = now_seconds);
  /// What has gone out, where that is noticeable for the first time. Looks once a second at most, because
  /// steps may take milliseconds; allocates nothing.
  std::optional<int64_t> look();

 private:
  std::function<int64_t()> swapped_;
  std::function<double()> seconds_;
  double looked_;
  int64_t first_;
  bool told_ = false;
};

}  // namespace plimsoll::telemetry
