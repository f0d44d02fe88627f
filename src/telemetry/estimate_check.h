// Compares the first steps of a run with the plan's estimate.
#pragma once

#include <optional>
#include <vector>

#include "planner/cost/step_times.h"
#include "training/trainer.h"

namespace plimsoll::telemetry {

/// Of each program's ops, in the order of Session::timed_ops, the median over the steps that were timed. (The
/// least of them would flatter the estimate: it leaves out of the measurement what every step meets.)
class OpMedians {
 public:
  /// `steps`: for how many there is room; further ones are not taken.
  explicit OpMedians(size_t steps) : steps_(steps) {}
  /// Takes the last step's in. Allocates at the first one alone.
  void add(const runtime::Session& session);
  [[nodiscard]] double of(size_t program, size_t op) const;

 private:
  size_t steps_, taken_ = 0;
  std::vector<std::vector<double>> seconds_;  ///< by program: op by op, `steps_` places each
};

/// A step's ops beside their estimates; those of `micro_next` as often as a step runs it.
planner::StepTimes step_times(const training::Trainer& trainer, const OpMedians& medians);

/// Watches a handful of steps op by op, which costs a reading of the clock each. Only where this machine was
/// calibrated, the CPU computes and every step is as long as the plan's: else there is nothing to hold
/// against. No bit depends on it.
class EstimateCheck {
 public:
  explicit EstimateCheck(training::Trainer& trainer);

  /// Before and after each step. The second gives what was found, once.
  void begin_step();
  std::optional<planner::StepTimes> end_step(const training::StepEvent& event);

 private:
  training::Trainer& trainer_;
  bool watches_ = false;
  std::vector<double> seconds_;
  OpMedians medians_;
};

}  // namespace plimsoll::telemetry
