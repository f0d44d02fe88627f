// What a run tells of its memory: warnings as they come, a summary when it is asked for.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/report_signal.h"
#include "telemetry/memory_summary.h"
#include "telemetry/memory_watch.h"

namespace plimsoll::training {
class Trainer;
}

namespace plimsoll::telemetry {

class Events;

class RunMemory {
 public:
  /// `every`: a summary after every so many steps, beside those that SIGUSR2 asks for; 0: none.
  RunMemory(const training::Trainer& trainer, Events& events, int64_t every);
  /// At the end of a piece of a phase, of which the last step is `step`: "start", "step", "eval",
  /// "checkpoint".
  void after(std::string_view phase, int64_t step);
  /// By phase the most that the process had.
  [[nodiscard]] const std::vector<std::pair<std::string, int64_t>>& phases() const { return watch_.phases(); }

 private:
  void tell(int64_t step);

  const training::Trainer& trainer_;
  Events& events_;
  int64_t every_, since_step_;
  PhasesRun ran_;
  MemoryWatch watch_;
};

}  // namespace plimsoll::telemetry
