// Makes the events of a run, as objects and as lines for people, and reports them to a sink.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress_clock.h"
#include "base/sparkline.h"
#include "checkpoints/load_weights.h"
#include "checkpoints/save_report.h"
#include "io/tree.h"
#include "planner/cost/step_times.h"
#include "planner/report/report.h"
#include "telemetry/memory_summary.h"
#include "telemetry/memory_watch.h"
#include "telemetry/sink.h"
#include "training/observer.h"

namespace plimsoll::telemetry {

struct Summary {
  int64_t steps = 0, units = 0;          ///< of this process, as are its seconds
  int64_t run_steps = 0, run_units = 0;  ///< from the first step of the run on, whichever processes did them
  std::string_view unit = "tokens";      ///< of the task: what the units are
  double seconds = 0, startup_seconds = 0;
  int64_t planned_peak_bytes = 0, measured_peak_bytes = 0;
  /// Where the device has memory of its own, and the two above are its; else none.
  std::optional<int64_t> host_planned_peak_bytes = {}, host_measured_peak_bytes = {};
  int64_t arena_bytes = 0;
  int64_t allocations_after_first_step = 0;
  std::vector<std::pair<std::string, int64_t>> phase_peak_bytes = {};  ///< of the process, as measured
  double small_allocations_per_step = 0;  ///< heap requests below kLargeAllocation, after the first step
  /// Of a run that compares evaluations: the best one's step and metric, and whether patience ended the run.
  struct Best {
    std::string metric;
    int64_t step = 0;
    double value = 0;
    bool stopped_early = false;
  };
  std::optional<Best> best = {};
};

enum class PlanDetail : uint8_t { kShort, kAll };

class Events {
 public:
  /// `sink` outlives it.
  explicit Events(Sink& sink) : sink_(sink) {}
  /// For the lines of steps: how many there will be.
  void set_total_steps(int64_t total_steps) { total_steps_ = total_steps; }
  /// For people all of it, or what a run says before it begins.
  void plan(const planner::PlanReport& report, PlanDetail detail);
  /// Weights that were read, with the rate.
  void load(const checkpoints::LoadReport& loaded);
  void step(const training::StepEvent& event);
  /// How far an evaluation has come, in sequences. May be called often.
  void eval_progress(int64_t done, int64_t total);
  /// Takes that line away.
  void end_progress();
  void eval(const training::EvalEvent& event);
  void checkpoint(const checkpoints::SaveReport& saved);
  /// The system moves the run's memory out: a warning.
  void swapping(int64_t step, int64_t bytes);
  void memory_warning(int64_t step, const MemoryWarning& warning);
  void memory_summary(const MemorySummary& summary);
  /// An object for machines alone.
  void event(const io::Tree& event) { emit(event); }
  /// What the first steps took beside the plan's estimate; for people a warning where it is far off.
  void estimate(const planner::StepTimes& times);
  /// What the run goes on without. For people alone.
  void warning(const std::string& text);
  /// A line for people alone.
  void note(const std::string& text);
  void summary(const Summary& summary);

  /// Of a run that is logged: keeps the objects' lines until `log_to` says where they go from then on.
  void keep_lines() { keeps_lines_ = true; }
  void log_to(std::function<void(const std::string& line)> log);

 private:
  /// To the log, and to the sink where its audience takes events.
  void emit(const io::Tree& event);
  [[nodiscard]] bool takes_events() const { return sink_.audience().events; }
  [[nodiscard]] bool is_watched() const { return sink_.audience().watches; }
  /// "loss ▇▅▃▁ 5.5571 at step 1, 3.8787 at step 60", with a line's end; empty without steps.
  [[nodiscard]] std::string course_text() const;

  Sink& sink_;
  bool keeps_lines_ = false;
  std::vector<std::string> kept_;
  std::function<void(const std::string&)> log_;
  int64_t total_steps_ = 0;
  double mean_seconds_ = 0;
  int64_t budget_bytes_ = 0;  ///< the process's; 0: not told
  int64_t peak_bytes_ = 0;    ///< of the process, as it was looked at last
  double looked_at_peak_ = 0;
  Course losses_;
  double first_loss_ = 0, last_loss_ = 0;
  int64_t first_step_ = 0, last_step_ = 0;   ///< that were told; 0: none
  std::optional<ProgressClock> eval_clock_;  ///< of the evaluation that runs; nothing: none does
};

}  // namespace plimsoll::telemetry
