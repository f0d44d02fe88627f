#include "settings/best_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "settings/wrong.h"

namespace plimsoll::settings {
namespace {

/// transformers goes by "loss" alone; an error is none the better for being large either.
bool is_better_when_less(std::string_view metric) {
  constexpr std::array<std::string_view, 3> kErrors = {"loss", "perplexity", "mse"};
  return std::any_of(kErrors.begin(), kErrors.end(),
                     [&](std::string_view error) { return metric.ends_with(error); });
}

}  // namespace

std::optional<BestMetric> best_metric(const TrainingSettings& training) {
  const bool wanted = training.load_best_model_at_end || training.early_stopping_patience ||
                      !training.metric_for_best_model.empty();
  if (!wanted) return std::nullopt;
  BestMetric metric;
  std::string_view name = training.metric_for_best_model;
  if (name.starts_with("eval_")) name.remove_prefix(5);
  if (!name.empty()) metric.name = name;
  metric.greater_is_better = training.greater_is_better.value_or(!is_better_when_less(metric.name));
  if (metric.name == "f1" || metric.name.ends_with("_f1")) metric.otherwise = metric.name + "_macro";
  return metric;
}

void settle_epochs(RunConfig& config, int64_t num_sequences) {
  const int64_t steps = std::max<int64_t>(1, num_sequences / config.training.global_batch_size);
  if (config.training.eval_strategy == "epoch") config.training.eval_steps = steps;
  if (config.output.save_strategy == "epoch") config.output.save_steps = steps;
}

Status check_best_model(const RunConfig& config) {
  const TrainingSettings& t = config.training;
  if (!t.load_best_model_at_end && !t.early_stopping_patience) return Ok{};
  const std::string setting =
      t.load_best_model_at_end ? "training.load_best_model_at_end" : "training.early_stopping_patience";
  if (!config.evaluates_while_training())
    return wrong_setting(setting + " compares evaluations, and nothing is evaluated",
                         config.data.evaluates() ? "set training.eval_strategy=steps" : "set data.eval");
  const bool by_epoch = t.eval_strategy == "epoch", saves_by_epoch = config.output.save_strategy == "epoch";
  if (t.load_best_model_at_end && by_epoch != saves_by_epoch)
    return wrong_setting(fmt::format("training.load_best_model_at_end: training.eval_strategy is {}, and "
                                     "output.save_strategy is {}",
                                     t.eval_strategy, config.output.save_strategy),
                         by_epoch ? "set output.save_strategy=epoch" : "set training.eval_strategy=epoch");
  if (by_epoch) return Ok{};
  if (t.eval_steps == 0)
    return wrong_setting(setting + " compares evaluations, and there is one alone, after the last step",
                         "set training.eval_steps");
  if (!t.load_best_model_at_end) return Ok{};
  const int64_t every = config.output.save_steps;
  if (every == 0)
    return wrong_setting("training.load_best_model_at_end restores a checkpoint, and none is saved",
                         fmt::format("set output.save_steps={}", t.eval_steps));
  if (every % t.eval_steps != 0)
    return wrong_setting(
        fmt::format("training.load_best_model_at_end: output.save_steps ({}) is no multiple of "
                    "training.eval_steps ({}), so checkpoints are saved without an evaluation",
                    every, t.eval_steps),
        fmt::format("set output.save_steps={}", (every / t.eval_steps + 1) * t.eval_steps));
  return Ok{};
}

}  // namespace plimsoll::settings
