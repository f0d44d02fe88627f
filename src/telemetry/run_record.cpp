#include "telemetry/run_record.h"

#include <algorithm>

#include "base/median.h"
#include "base/process.h"
#include "training/trainer.h"

namespace plimsoll::telemetry {

void RunRecord::add(const training::StepEvent& event) {
  if (seconds_.empty()) {
    first_step_end_ = now_seconds();
  } else {  // mappings and the heap's break by their size, requests by their number
    const int64_t large = num_large_allocations() - requests_.large;
    allocations_ += (virtual_bytes() > virtual_bytes_ ? 1 : 0) + large;
    small_allocations_ += num_allocations() - requests_.all - large;
  }
  seconds_.push_back(event.seconds);
  units_ += event.units;
  resume();
}

void RunRecord::resume() {
  virtual_bytes_ = virtual_bytes();
  requests_ = {num_allocations(), num_large_allocations()};
}

double RunRecord::median_seconds() const { return median(seconds_); }

Summary RunRecord::summary(const training::Trainer& trainer) const {
  Summary s;
  s.steps = static_cast<int64_t>(seconds_.size());
  s.units = units_;
  s.run_steps = trainer.steps_done();
  s.run_units = trainer.units_trained();
  s.unit = trainer.prepared().task->unit().name;
  for (const double t : seconds_) s.seconds += t;
  s.startup_seconds = std::max(0.0, first_step_end_ - process_start_seconds_ - median_seconds());
  const planner::PlanReport& plan = trainer.prepared().report;
  s.planned_peak_bytes = plan.process_peak_bytes();
  s.measured_peak_bytes = peak_resident_bytes();
  if (!plan.device_is_process) {
    const int64_t device = trainer.was_finished() ? 0 : trainer.session().device().peak_memory().count;
    s.host_planned_peak_bytes = plan.host_peak_bytes();
    s.host_measured_peak_bytes = s.measured_peak_bytes - (plan.device_in_process ? device : 0);
    s.planned_peak_bytes = plan.device_peak_bytes();
    s.measured_peak_bytes = device;
  }
  s.arena_bytes = trainer.plan().device().arena;
  s.allocations_after_first_step = allocations_;
  if (seconds_.size() > 1)
    s.small_allocations_per_step =
        static_cast<double>(small_allocations_) / static_cast<double>(seconds_.size() - 1);
  if (const auto best = trainer.best().state(); best && best->step >= 0)
    s.best = {"eval_" + best->metric, best->step, best->value,
              trainer.steps_done() < trainer.total_steps() && trainer.best().stops()};
  return s;
}

}  // namespace plimsoll::telemetry
