// The reports of a training loop, and the interfaces that receive them. Training knows nothing of its
// observers: events for people and machines, run folders and monitors (telemetry/) implement these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoints/save_report.h"
#include "metrics/confusion.h"
#include "metrics/metrics.h"
#include "passes/session_plan.h"

namespace plimsoll::training {

/// How long the ranks of a run computed in a step, without waits for each other.
struct RankTimes {
  int64_t slowest = 0;  ///< a rank
  double slowest_seconds = 0, median_seconds = 0;
};

struct StepEvent {
  int64_t step = 0;
  double loss = 0, grad_norm = 0, learning_rate = 0;
  double loss_mean = 0;  ///< over the steps since the last event, this one included
  int64_t units = 0, samples = 0;
  std::string_view unit = "tokens";  ///< of the task: what `units` counts
  double seconds = 0, data_wait_seconds = 0;
  std::optional<double> loss_scale = {};  ///< what the loss was multiplied with; nothing: it is not scaled
  bool skipped = false;                   ///< a gradient overflowed, nothing was updated
  std::optional<RankTimes> ranks = {};    ///< of several ranks
};
/// An example of an evaluation that a report may show.
struct EvalExample {
  std::string name;              ///< of its file
  std::string label, predicted;  ///< names of classes
  double score = 0;              ///< the probability of the predicted class
};
struct EvalEvent {
  std::string name = {};  ///< of the set or source; empty: of all there is
  int64_t step = 0;
  double loss = 0;
  int64_t units = 0;
  int64_t targets = 0;                         ///< what the loss is a mean over
  std::string_view unit = "tokens";            ///< of the task: what `units` counts
  std::string_view loss_unit = "loss tokens";  ///< and `targets`
  bool has_perplexity = true;                  ///< exp(loss) means something
  std::vector<metrics::Value> metrics = {};    ///< of a task that has some
  metrics::Confusion confusion = {};           ///< of a classifier with few classes
  std::vector<EvalExample> examples = {};      ///< of all parts, ShownExamples' choice
  std::vector<EvalEvent> parts = {};           ///< named sets, or what is held out of a mixture's sources

  /// "loss 0.1234, perplexity 1.131" or "loss 0.1234, accuracy 0.95, …": with so many digits of the loss.
  [[nodiscard]] std::string text(int digits) const;
  /// "over 699 loss tokens of 700", "over 12 examples of 700 tokens", "over 12 images": what the loss is a
  /// mean over, and what was read.
  [[nodiscard]] std::string counts() const;
};

/// Receives what a run loop does, on the loop's thread and in its order. Every function does nothing by
/// default. None may fail: what an observer cannot write is its own affair.
class Observer {
 public:
  virtual ~Observer() = default;
  /// A step is about to run.
  virtual void step_begins() {}
  /// A step has run; `logged`: it is one that training.logging_steps asks for, the last, or one that was
  /// skipped.
  virtual void step_ran(const StepEvent& /*event*/, bool /*logged*/) {}
  /// What follows a step (saving, evaluating) has ended as well.
  virtual void step_ended() {}
  /// Sequences that an evaluation has read, of all. May be called often.
  virtual void evaluating(int64_t /*done*/, int64_t /*total*/) {}
  /// An evaluation after `step` has ended; null where it was asked to stop.
  virtual void evaluated(int64_t /*step*/, const EvalEvent* /*event*/) {}
  /// A checkpoint is about to be written: files that it copies must be up to date.
  virtual void checkpoint_begins() {}
  virtual void checkpoint_saved(const checkpoints::SaveReport& /*saved*/) {}
  virtual void final_saved(const checkpoints::SaveReport& /*saved*/) {}
  /// A line for people.
  virtual void note(const std::string& /*text*/) {}
  virtual void warning(const std::string& /*text*/) {}
};

/// Receives which programs run, from the first one on.
class ProgramObserver {
 public:
  virtual ~ProgramObserver() = default;
  /// Before the first program runs; may allocate.
  virtual void begin(const passes::SessionPlan& session) = 0;
  /// A program is queued; must not allocate.
  virtual void ran(int program) = 0;
};

}  // namespace plimsoll::training
