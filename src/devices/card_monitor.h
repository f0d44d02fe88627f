// Reads load, clocks, power and temperature of a card through NVML. The library comes with the driver and is
// loaded when it is first asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::devices {

/// What a card does not tell is -1.
struct CardSample {
  int64_t busy_percent = -1;  ///< of the time a kernel ran; says nothing of how much of the card it used
  int64_t memory_busy_percent = -1;                         ///< of the time its memory was read or written
  int64_t memory_used_bytes = -1, memory_total_bytes = -1;  ///< by all processes
  int64_t clock_mhz = -1, memory_clock_mhz = -1;
  int64_t milliwatts = -1, celsius = -1;
  std::vector<std::string> slowed_by = {};  ///< "power cap", "heat", …; idling is none
};

class CardMonitor {
 public:
  virtual ~CardMonitor() = default;
  /// About 1 ms, none of it the card's.
  [[nodiscard]] virtual CardSample sample() const = 0;
};

/// Of the card that runtime.device counts as `ordinal`: as CUDA_VISIBLE_DEVICES orders them, else by their
/// slots. Libraries are looked for in the folders of PLIMSOLL_CUDA_LIBRARIES first. Errors: kIo where there
/// is no library, or no such card.
Result<std::unique_ptr<CardMonitor>> open_card_monitor(int ordinal);

}  // namespace plimsoll::devices
