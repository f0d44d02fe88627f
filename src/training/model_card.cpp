#include "training/model_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/units.h"
#include "io/hub_cache.h"
#include "settings/settings.h"
#include "tasks/task_list.h"

namespace plimsoll::training {
namespace {

std::string quoted(const std::string& text) { return "`" + text + "`"; }

std::string row(std::string_view name, const std::string& value) {
  return fmt::format("| {} | {} |\n", name, value);
}

std::string files(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + quoted(name);
  return text;
}

std::string first_weights(const settings::RunConfig& config, const strategy::Prepared& prepared) {
  if (settings::starts_pretrained(config.model)) return "the weights of " + quoted(config.model.path);
  const std::string architecture = config.model.path.empty() && config.model.preset.empty()
                                       ? "the run's own"
                                       : quoted(prepared.report.model);
  return fmt::format("random weights, seed {}; architecture: {}", config.training.seed, architecture);
}

/// What the hub reads: a base model only by an id that it knows.
std::string front_matter(const settings::RunConfig& config, std::string_view pipeline) {
  std::string text = config.lora.enabled ? "---\nlibrary_name: peft\n" : "---\nlibrary_name: transformers\n";
  text += fmt::format("pipeline_tag: {}\n", pipeline);
  std::error_code ignored;
  const std::string& path = config.model.path;
  if (settings::starts_pretrained(config.model) && io::is_hub_id(path) &&
      !std::filesystem::exists(path, ignored))
    text += "base_model: " + path + "\n";
  return text + "tags: [plimsoll]\n---\n\n";
}

std::string training_rows(const settings::RunConfig& config, const strategy::Prepared& prepared,
                          const CardFigures& figures) {
  const settings::TrainingSettings& t = config.training;
  std::string rows = row("initial weights", first_weights(config, prepared));
  rows += row("data", files(config.data.train));
  if (!config.data.eval.empty()) rows += row("held out", files(config.data.eval));
  const tasks::Unit unit = prepared.task->unit();
  const std::string examples =
      unit.by_length ? fmt::format("sequences of up to {} {}", config.data.sequence_length, unit.name)
                     : std::string(unit.name);
  rows += row("steps", fmt::format("{} of {} {}, {} {} in all", figures.steps, t.global_batch_size, examples,
                                   figures.units, unit.name));
  rows += row("optimizer", fmt::format("{}, learning rate {:g}, {}, weight decay {:g}", t.optimizer,
                                       t.learning_rate, t.lr_scheduler, t.weight_decay));
  rows += row("precision",
              std::string(settings::setting_text(*settings::find_setting("training.precision"), config)));
  if (figures.loss) rows += row("training loss", fmt::format("{:.4f} in the last step", *figures.loss));
  if (figures.eval)
    rows += row("evaluation", fmt::format("{} at step {}", figures.eval->text(4), figures.eval->step));
  for (const std::string& change : figures.changes) rows += row("changed after", change);
  if (!figures.best.empty()) rows += row("this model", "the best evaluation's: " + figures.best);
  const planner::PlanReport& plan = prepared.report;
  return rows + row("plan", fmt::format("peak {}; {}, recompute {}, offload {}",
                                        to_string(Bytes(plan.process_peak_bytes())),
                                        planner::split_text(plan.micro_batch_size, plan.grad_accum_steps),
                                        plan.recompute, plan.offload));
}

}  // namespace

std::string model_card(const settings::RunConfig& config, const strategy::Prepared& prepared,
                       const CardFigures& figures) {
  const auto task = tasks::choose_task(config.task, prepared.model_config);
  PLIMSOLL_CHECK(task, "a trained model without a task");
  const std::filesystem::path folder = std::filesystem::path(config.output.dir).lexically_normal();
  const std::string name = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  const auto type = prepared.model_config.model_type();
  std::string card = front_matter(config, (*task)->pipeline) + "# " + name + "\n\n";
  const std::string_view what = (*task)->trains;
  const std::string family = type ? *type : "unknown";
  if (config.lora.enabled)
    card += fmt::format(
        "A LoRA adapter of a {} of the {} family: {} parameters beside those of its base, trained "
        "with Plimsoll.\n\n",
        what, family, prepared.model->num_trained());
  else
    card += fmt::format("A {} of the {} family with {} parameters, trained with Plimsoll.\n\n", what, family,
                        prepared.model->num_parameters());
  card += "| | |\n| --- | --- |\n" + training_rows(config, prepared, figures);
  return card + "\nThe run file:\n\n```yaml\n" + settings::run_config_yaml(config) + "```\n";
}

}  // namespace plimsoll::training
