// Whether the system moves a run's memory out while it trains: a step then waits for the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace plimsoll::train {

/// Says so once. What was out before the run began does not count.
class SwapWatch {
 public:
  /// `swapped`: bytes of this process in swap.
  explicit SwapWatch(std::function<int64_t()> swapped);
  /// What has gone out, where that is noticeable for the first time. Reads one small file, allocates nothing.
  std::optional<int64_t> look();

 private:
  std::function<int64_t()> swapped_;
  int64_t first_;
  bool told_ = false;
};

}  // namespace plimsoll::train
