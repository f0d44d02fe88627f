// Learning-rate schedules: pure functions of the step, equal to transformers' get_*_schedule, and torch's
// StepLR and OneCycleLR for the two that transformers has not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "settings/choice.h"

namespace plimsoll::settings {

struct TrainingSettings;

/// What a schedule needs; the run file's training.lr_scheduler_kwargs are the extras.
struct ScheduleOptions {
  std::string name = "cosine";  ///< one of schedule_names()
  double learning_rate = 5e-5;
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;
  double num_cycles = -1;     ///< below 0: the schedule's own default (cosine 0.5, with restarts 1, wsd 0.5)
  double power = 1.0;         ///< polynomial
  double lr_end = 1e-7;       ///< polynomial: the last rate
  double min_lr_ratio = 0.0;  ///< warmup_stable_decay: smallest share of the learning rate
  int64_t num_decay_steps = -1;      ///< warmup_stable_decay; below 0: a tenth of the steps
  Ramp decay_type = Ramp::kCosine;   ///< warmup_stable_decay
  Ramp warmup_type = Ramp::kLinear;  ///< warmup_stable_decay
  int64_t step_size = -1;            ///< step: steps between drops; below 0: a third of the steps
  double gamma = 0.1;                ///< step: factor of a drop
  double pct_start = 0.3;            ///< one_cycle: share of the steps with a rising learning rate
  double div_factor = 25.0;          ///< one_cycle: peak / first rate
  double final_div_factor = 1e4;     ///< one_cycle: first rate / last rate
};

/// A checked schedule.
class Schedule {
 public:
  /// Errors: kInvalidArgument for an unknown name, warmup beyond the steps, parameters that contradict.
  static Result<Schedule> create(const ScheduleOptions& options);
  /// The rate of step `step`, from 1: the schedule's value at step - 1. Beyond the last step it goes on as
  /// transformers' does.
  [[nodiscard]] double rate(int64_t step) const { return options_.learning_rate * factor(step); }
  /// The same over the peak: what the schedule multiplies a group's own rate with.
  [[nodiscard]] double factor(int64_t step) const;

 private:
  explicit Schedule(ScheduleOptions options) : options_(std::move(options)) {}
  ScheduleOptions options_;
};

/// The run's schedule over `total_steps` steps, its warm-up from warmup_steps or warmup_ratio. Errors: as
/// create.
Result<Schedule> make_schedule(const TrainingSettings& training, int64_t total_steps);

/// Where the warm-up is no shorter than the run: a line that names both. Else empty.
std::string warmup_note(const TrainingSettings& training, int64_t total_steps);

/// Canonical names and aliases (wsd).
std::vector<std::string> schedule_names();

}  // namespace plimsoll::settings
