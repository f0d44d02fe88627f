#include "preprocessing/run_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "corpora/column_stream.h"
#include "preprocessing/data_files.h"
#include "settings/settings.h"

namespace plimsoll::preprocessing {
namespace {

/// Settings that are given and that the task does not read: `task: auto` may come to any, and some settings
/// go by another one than the task.
Status check_idle(const settings::RunConfig& config, const tasks::TaskDef& task) {
  const settings::RunConfig usual;
  for (const settings::Setting& setting : settings::settings()) {
    const std::vector<std::string_view> readers = tasks::readers_of(setting.path);
    if (readers.empty() || std::ranges::find(readers, task.name) != readers.end()) continue;
    const std::string text = settings::setting_text(setting, config);
    if (text == settings::setting_text(setting, usual)) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is {}, which has no effect with task {}", setting.path, text, task.name),
                 setting.path, fmt::format("leave it out: it is for {}", fmt::join(readers, " and "))};
  }
  return Ok{};
}

}  // namespace

Result<const tasks::TaskDef*> task_of(const settings::RunConfig& config, const io::ConfigJson& model) {
  PLIMSOLL_ASSIGN(const tasks::TaskDef* task, tasks::choose_task(config.task, model));
  const std::string& packing = config.data.packing;
  if (task->preparation != tasks::Preparation::kPack && packing != "auto" && packing != "pad")
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("data.packing is {}, and {} takes one example a row", packing, task->name),
                 {},
                 "leave data.packing out"};
  PLIMSOLL_TRY(check_idle(config, *task));
  return task;
}

namespace {

/// Null where the model or its task cannot be read.
const tasks::TaskDef* task_or_none(const settings::RunConfig& config) {
  const auto model = settings::load_model_config(config.model);
  const auto task = model ? task_of(config, *model) : Result<const tasks::TaskDef*>(Error{});
  return task ? *task : nullptr;
}

}  // namespace

bool masks_tokens(const settings::RunConfig& config) {
  const tasks::TaskDef* task = task_or_none(config);
  return task != nullptr && task->masks;
}

bool takes_images(const settings::RunConfig& config) {
  const tasks::TaskDef* task = task_or_none(config);
  return task != nullptr && task->preparation == tasks::Preparation::kImages;
}

io::Labels span_labels() { return {io::ProblemType::kRegression, {"begin", "end"}}; }

Result<corpora::LabelRequest> label_request(const settings::RunConfig& config, const io::ConfigJson& model) {
  corpora::LabelRequest request;
  PLIMSOLL_ASSIGN(request.config, io::read_label_fields(model));
  request.whole = io::is_sequence_classifier(model);
  const settings::ClassificationSettings& said = config.classification;
  request.problem = io::parse_problem_type(said.problem_type);
  request.num_labels = said.num_labels;
  request.names = said.label_names;
  return request;
}

Result<corpora::EarlyLabels> find_labels(const settings::RunConfig& config, const io::ConfigJson& model,
                                         bool train) {
  PLIMSOLL_ASSIGN(const corpora::LabelRequest request, label_request(config, model));
  PLIMSOLL_ASSIGN(corpora::EarlyLabels early, corpora::labels_without_data(request));
  if (early.certain) return early;
  const int64_t most = (train ? config.data.max_train_samples : config.data.max_eval_samples).value_or(0);
  // Which ones the first of a side or of each source are shows when they are prepared.
  if (most > 0 && (config.data.eval_fraction > 0 || !config.data.weights.empty())) return early;
  const std::vector<std::string> files = files_of(train ? config.data.train : config.data.eval.files);
  // What reads these is large, and no part of this process's plan.
  if (std::any_of(files.begin(), files.end(), corpora::has_columns_by_name)) return early;
  const auto found = corpora::scan_labels(
      files, {.text_key = config.data.text_key},
      config.data.on_error == "skip" ? corpora::OnError::kSkip : corpora::OnError::kFail, most);
  if (!found || found->examples == 0) return early;
  auto labels = corpora::resolve_labels(request, *found);
  // One class alone: the examples contradict it, which is told when they are prepared.
  if (!labels || (labels->problem == io::ProblemType::kSingleLabel && labels->count() < 2)) return early;
  return corpora::EarlyLabels{std::move(*labels), true};
}

}  // namespace plimsoll::preprocessing
