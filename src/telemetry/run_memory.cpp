#include "telemetry/run_memory.h"

#include <algorithm>

#include "base/process.h"
#include "base/process_memory.h"
#include "telemetry/events.h"
#include "training/trainer.h"

namespace plimsoll::telemetry {
namespace {

void note(std::vector<std::string>& phases, std::string_view phase) {
  if (std::ranges::find(phases, phase) == phases.end()) phases.emplace_back(phase);
}

}  // namespace

RunMemory::RunMemory(const training::Trainer& trainer, Events& events, int64_t every,
                     std::function<bool()> asked)
    : trainer_(trainer),
      events_(events),
      asked_(std::move(asked)),
      every_(every),
      since_step_(trainer.steps_done()),
      watch_(trainer.prepared().report.process_peak_bytes(), system_memory()) {
  after("start", trainer.steps_done());
}

void RunMemory::after(std::string_view phase, int64_t step) {
  note(ran_.recent, phase);
  note(ran_.all, phase);
  for (const MemoryWarning& warning : watch_.look(phase)) events_.memory_warning(step, warning);
  const bool due = phase == "step" && every_ > 0 && step % every_ == 0;
  if (phase == "step" && ((asked_ && asked_()) || due)) tell(step);
}

void RunMemory::tell(int64_t step) {
  const planner::PlanReport& plan = trainer_.prepared().report;
  const int64_t resident = resident_bytes();
  MemorySummary summary =
      memory_summary(trainer_.session().plan(), plan, ran_,
                     {.resident_bytes = resident,
                      .recent_bytes = std::max(resident, watch_.recent_bytes()),
                      .peak_bytes = peak_resident_bytes(),
                      .device_peak_bytes = trainer_.session().device().peak_memory().count});
  summary.step = step;
  summary.since_step = since_step_;
  summary.phases = watch_.phases();
  events_.memory_summary(summary);
  watch_.reset();
  ran_.recent.clear();
  since_step_ = step;
}

}  // namespace plimsoll::telemetry
