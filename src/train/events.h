// What a run tells while it goes: one JSON object a line on stdout with --json, otherwise lines for people on
// stderr - one that rewrites itself on a terminal, plain ones elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "io/tree.h"
#include "planner/report.h"

namespace plimsoll::train {

struct StepEvent {
  int64_t step = 0;
  double loss = 0, grad_norm = 0, learning_rate = 0;
  int64_t tokens = 0, samples = 0;
  double seconds = 0, data_wait_seconds = 0;
};
struct EvalEvent {
  int64_t step = 0;
  double loss = 0;
  int64_t tokens = 0;
};
struct Summary {
  int64_t steps = 0, tokens = 0;
  double seconds = 0, startup_seconds = 0;
  int64_t planned_peak_bytes = 0, measured_peak_bytes = 0;
  int64_t arena_bytes = 0, arena_touched_bytes = 0;
  int64_t allocations_after_first_step = 0;
};

class Events {
 public:
  Events(bool json, int64_t total_steps);
  ~Events();

  void plan(const planner::PlanReport& report);
  void step(const StepEvent& event);
  void eval(const EvalEvent& event);
  void checkpoint(int64_t step, const std::string& path, double seconds);
  void summary(const Summary& summary);

 private:
  void print_json(const Tree& event);
  /// Ends a line that rewrites itself.
  void finish_line();

  bool json_ = false;
  bool terminal_ = false;
  bool open_line_ = false;
  int64_t total_steps_ = 0;
  double mean_seconds_ = 0;
};

}  // namespace plimsoll::train
