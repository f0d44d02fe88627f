// All that watches a training run: events, the run folder, memory and machine monitors, the check of
// estimates.
#pragma once

#include <functional>
#include <optional>

#include "settings/run_config.h"
#include "telemetry/estimate_check.h"
#include "telemetry/events.h"
#include "telemetry/run_folder.h"
#include "telemetry/run_memory.h"
#include "telemetry/run_monitor.h"
#include "telemetry/run_record.h"
#include "telemetry/swap_watch.h"
#include "training/observer.h"
#include "training/trainer.h"

namespace plimsoll::telemetry {

class RunObserver : public training::Observer {
 public:
  /// All outlive it. `process_start_seconds`: steady clock when the process began; `memory_summary`: a table
  /// of the memory every so many steps, 0: none; `memory_asked`: whether one is wanted after this step.
  RunObserver(const settings::RunConfig& config, training::Trainer& trainer, Events& events,
              double process_start_seconds, int64_t memory_summary, std::function<bool()> memory_asked);
  ~RunObserver() override;
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;

  void step_begins() override;
  void step_ran(const training::StepEvent& event, bool logged) override;
  void step_ended() override;
  void evaluating(int64_t done, int64_t total) override;
  void evaluated(int64_t step, const training::EvalEvent* event) override;
  void checkpoint_begins() override;
  void checkpoint_saved(const checkpoints::SaveReport& saved) override;
  void final_saved(const checkpoints::SaveReport& saved) override;
  void note(const std::string& text) override;
  void warning(const std::string& text) override;

  /// Reports the summary of a run that has ended, and what slowed it.
  void run_ended();
  /// Writes trainer_state.json of a run that ended with an error.
  void run_failed();

 private:
  training::Trainer& trainer_;
  Events& events_;
  RunFolder folder_;
  RunRecord record_;
  RunMemory memory_;
  RunMonitor monitor_;
  SwapWatch swap_;
  EstimateCheck check_;
};

}  // namespace plimsoll::telemetry
