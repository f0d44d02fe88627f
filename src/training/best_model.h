// Tracks the best evaluation of a run and decides about early stopping.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/checkpoint.h"
#include "settings/best_model.h"
#include "training/observer.h"

namespace plimsoll::training {

/// The figures of an evaluation by their names: "loss", "perplexity", metrics, and "<set>_…" of named sets.
std::vector<std::pair<std::string, double>> figures_of(const EvalEvent& event);

/// As transformers' Trainer and its EarlyStoppingCallback: an evaluation is the best where its metric is
/// better than all before; patience counts those that are not better than the best by more than the
/// threshold.
class BestModel {
 public:
  explicit BestModel(const settings::TrainingSettings& training);

  /// Whether evaluations are compared at all.
  [[nodiscard]] bool tracks() const { return metric_.has_value(); }
  /// Goes on from what a checkpoint says; of another metric it says nothing, and false comes back.
  bool resume(const std::optional<checkpoints::BestState>& state);
  /// The next evaluation. Errors: kInvalidArgument where it has no figure of the metric's name.
  Status add(const EvalEvent& event);
  /// The step that was evaluated last has, or will have, a checkpoint.
  void set_saved();

  /// Whether patience is at its end.
  [[nodiscard]] bool stops() const;
  /// Nothing where evaluations are not compared.
  [[nodiscard]] std::optional<checkpoints::BestState> state() const;
  /// "eval_loss 1.2345 at step 40", of the best checkpoint; empty where there is none.
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] bool is_better(double value, double than) const {
    return metric_->greater_is_better ? value > than : value < than;
  }
  std::optional<settings::BestMetric> metric_;
  std::optional<int64_t> patience_;
  double threshold_ = 0;
  checkpoints::BestState state_;
  int64_t last_step_ = -1;
  double last_value_ = 0;
};

}  // namespace plimsoll::training
