#include "telemetry/run_observer.h"

#include <utility>

#include "base/process_memory.h"

namespace plimsoll::telemetry {

RunObserver::RunObserver(const settings::RunConfig& config, training::Trainer& trainer, Events& events,
                         double process_start_seconds, int64_t memory_summary,
                         std::function<bool()> memory_asked)
    : trainer_(trainer),
      events_(events),
      folder_(config, trainer, [&events](const std::string& text) { events.warning(text); }),
      record_(process_start_seconds),
      memory_(trainer, events, memory_summary, std::move(memory_asked)),
      monitor_(config),
      swap_(swapped_bytes),
      check_(trainer) {
  events.log_to([this](const std::string& line) { folder_.line(line); });
}

RunObserver::~RunObserver() { events_.log_to({}); }

void RunObserver::step_begins() { check_.begin_step(); }

void RunObserver::step_ran(const training::StepEvent& event, bool logged) {
  record_.add(event);
  if (const auto times = check_.end_step(event)) events_.estimate(*times);
  if (logged) {
    events_.step(event);
    folder_.step(event);
    if (const auto bytes = swap_.look()) events_.swapping(event.step, *bytes);
  }
  memory_.after("step", event.step);
  if (const io::Tree machine = monitor_.after(event.step); !machine.is_null()) events_.event(machine);
}

void RunObserver::step_ended() { record_.resume(); }

void RunObserver::evaluating(int64_t done, int64_t total) { events_.eval_progress(done, total); }

void RunObserver::evaluated(int64_t step, const training::EvalEvent* event) {
  events_.end_progress();
  memory_.after("eval", step);
  if (event == nullptr) return;
  events_.eval(*event);
  folder_.eval(*event);
}

void RunObserver::checkpoint_begins() { folder_.write_state(); }

void RunObserver::checkpoint_saved(const checkpoints::SaveReport& saved) {
  events_.checkpoint(saved);
  memory_.after("checkpoint", saved.step);
}

void RunObserver::final_saved(const checkpoints::SaveReport& saved) { events_.checkpoint(saved); }

void RunObserver::note(const std::string& text) { events_.note(text); }

void RunObserver::warning(const std::string& text) { events_.warning(text); }

void RunObserver::run_ended() {
  Summary summary = record_.summary(trainer_);
  summary.phase_peak_bytes = memory_.phases();
  events_.summary(summary);
  for (const MachineFinding& finding : monitor_.findings()) events_.note(finding.what + ": " + finding.hint);
  folder_.write_state(&summary);
}

void RunObserver::run_failed() { folder_.write_state(); }

}  // namespace plimsoll::telemetry
