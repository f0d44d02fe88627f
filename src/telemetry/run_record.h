// Accumulates the summary of a run step by step, for `train` and `bench step`.
#pragma once

#include <cstdint>
#include <vector>

#include "telemetry/events.h"

namespace plimsoll::training {
class Trainer;
}

namespace plimsoll::telemetry {

class RunRecord {
 public:
  /// `process_start_seconds`: steady clock when the process began.
  explicit RunRecord(double process_start_seconds) : process_start_seconds_(process_start_seconds) {}

  /// Right after a step: its figures, and what has been allocated since the first one or since `resume`.
  void add(const training::StepEvent& event);
  /// What was allocated since the last `add` is nobody's step: an evaluation, a message.
  void resume();
  /// Median seconds of a step, 0 before the first.
  [[nodiscard]] double median_seconds() const;
  [[nodiscard]] Summary summary(const training::Trainer& trainer) const;

 private:
  double process_start_seconds_;
  double first_step_end_ = 0;
  std::vector<double> seconds_;
  int64_t units_ = 0;  ///< of the task
  /// Heap requests of one place and time: how many, and how many of them large.
  struct HeapRequests {
    int64_t all = 0, large = 0;
  };
  int64_t allocations_ = 0;
  int64_t small_allocations_ = 0;  ///< in all steps behind the first
  int64_t virtual_bytes_ = 0;      ///< as of `resume`
  HeapRequests requests_ = {};     ///< as of `resume`
};

}  // namespace plimsoll::telemetry
