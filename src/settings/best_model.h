// Settings of best-model selection: the settings of transformers' load_best_model_at_end and
// EarlyStoppingCallback.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

/// A figure of an evaluation, by which it is compared.
struct BestMetric {
  std::string name = "loss";  ///< without "eval_"; "<set>_loss" of a named set
  /// What it is where an evaluation has no figure of that name: "f1" is f1_macro of more than two classes.
  std::string otherwise = {};
  bool greater_is_better = false;
};
/// Nothing where no setting asks which evaluation is the best.
std::optional<BestMetric> best_metric(const TrainingSettings& training);

/// Gives eval_strategy and save_strategy that go by epochs an interval for estimates and for the disk's room:
/// an epoch's steps, rounded down. Which steps end an epoch, Trainer::ends_epoch says.
void settle_epochs(RunConfig& config, int64_t num_sequences);

/// Whether evaluations and checkpoints are there when these settings need them. Called when eval_steps and
/// save_steps are settled. Errors: kInvalidArgument, as TrainingArguments and EarlyStoppingCallback raise
/// them.
Status check_best_model(const RunConfig& config);

}  // namespace plimsoll::settings
