// Reports the memory of a run: warnings as they come, a summary when it is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "telemetry/memory_summary.h"
#include "telemetry/memory_watch.h"

namespace plimsoll::training {
class Trainer;
}

namespace plimsoll::telemetry {

class Events;

class RunMemory {
 public:
  /// `every`: a summary after every so many steps; 0: none. `asked`: whether one is wanted after this step.
  RunMemory(const training::Trainer& trainer, Events& events, int64_t every, std::function<bool()> asked);
  /// At the end of a piece of a phase, of which the last step is `step`: "start", "step", "eval",
  /// "checkpoint".
  void after(std::string_view phase, int64_t step);
  /// By phase the most that the process had.
  [[nodiscard]] const std::vector<std::pair<std::string, int64_t>>& phases() const { return watch_.phases(); }

 private:
  void tell(int64_t step);

  const training::Trainer& trainer_;
  Events& events_;
  std::function<bool()> asked_;
  int64_t every_, since_step_;
  PhasesRun ran_;
  MemoryWatch watch_;
};

}  // namespace plimsoll::telemetry
