#include "checkpoints/same_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "checkpoints/final_record.h"
#include "io/file.h"
#include "io/label_fields.h"
#include "models/classifier.h"
#include "settings/settings.h"
#include "settings/state_settings.h"

namespace plimsoll::checkpoints {
namespace {

constexpr const char* kAnew = "set it back, or start a new run with --resume never or another output.dir";
constexpr const char* kReplace =
    "choose another output.dir, or start a new run with --resume never, which replaces final/ when it is "
    "finished";

/// What today's run is held against.
struct Recorded {
  const Checkpoint& checkpoint;
  bool finished = false;  ///< the record of a finished run

  /// What a message names: for a finished run what would be lost.
  [[nodiscard]] std::string place() const {
    return finished ? final_path(io::folder_of(checkpoint.path)) : checkpoint.path;
  }
};

/// The settings in which a run may differ from its checkpoint although they say what is trained.
bool may_grow(const std::string& path) {
  return path == "training.max_steps" || path == "training.num_epochs";
}

/// Fields of a config.json that do not touch the mathematics.
bool is_remark(const std::string& field) {
  constexpr std::array<std::string_view, 5> kRemarks = {"dtype", "torch_dtype", "transformers_version",
                                                        "_name_or_path", "use_cache"};
  return std::find(kRemarks.begin(), kRemarks.end(), field) != kRemarks.end();
}

std::string shortened(std::string text) {
  constexpr size_t kShown = 100;
  if (text.size() > kShown) text = text.substr(0, kShown) + "…";
  return text;
}

std::string hint_for(const Recorded& recorded, const std::string& path) {
  if (recorded.finished) return kReplace;
  const settings::Setting* setting = settings::find_setting(path);
  if (setting == nullptr || !setting->is_of_rate) return kAnew;
  return fmt::format("set it back, or resume with it: --resume-with {}=…", path);
}

Error changed(const Recorded& recorded, const std::string& setting, const std::string& now,
              const std::string& then, size_t others = 0) {
  std::string what =
      fmt::format("{} is {}, but the {} was made with {}", setting, shortened(now),
                  recorded.finished ? "finished run in this folder" : "checkpoint", shortened(then));
  if (others > 0) what += fmt::format(" (and {} more settings differ)", others);
  return Error{ErrorCode::kInvalidArgument, what, recorded.place(), hint_for(recorded, setting)};
}

/// What says in which precision is computed and kept: it may change where the state stays exact. The loss
/// scale's settings are part of that where one of the runs has no scale.
bool is_of_precision(const std::string& path, bool both_scale) {
  return path == "training.precision" || path == "training.precision_overrides" ||
         path == "training.residual_in_fp32" || path.starts_with("training.state.") ||
         (path.starts_with("training.loss_scale.") && !both_scale);
}

/// The frozen weights beside adapters are no part of a checkpoint: they are read anew, and must be the same.
bool may_convert(const std::string& path, const settings::RunConfig& now, bool both_scale) {
  return is_of_precision(path, both_scale) && !(now.lora.enabled && path == "training.state.weights");
}

std::string text_of(const std::string& path, const settings::RunConfig& run) {
  if (const settings::Setting* setting = settings::find_setting(path))
    return settings::setting_text(*setting, run);
  return (path == "lora" ? run.lora.enabled : run.quantization.enabled) ? "on" : "off";
}

/// The settings `with` go, and what each of them changed is returned.
std::vector<std::string> take_asked_for(std::vector<std::string>& paths, const std::vector<std::string>& with,
                                        const settings::RunConfig& now, const settings::RunConfig& then,
                                        int64_t step) {
  std::vector<std::string> changes;
  const auto is_named = [&](const std::string& path) {
    return std::find(with.begin(), with.end(), path) != with.end();
  };
  std::erase_if(paths, [&](const std::string& path) {
    // With another schedule its settings are others.
    const settings::Setting* setting = settings::find_setting(path);
    const bool follows = setting != nullptr && setting->is_of_rate && is_named(setting->only_with.path);
    if (!is_named(path) && !follows) return false;
    changes.push_back(fmt::format("step {}: {} is {}, it was {}", step, path, shortened(text_of(path, now)),
                                  shortened(text_of(path, then))));
    return true;
  });
  return changes;
}

Result<settings::RunConfig> read_run(const Checkpoint& from) {
  const std::string path = from.path + "/run.yaml";
  PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(path, io::TreeLimits{}.max_bytes));
  return settings::parse_recorded_run(text, path);
}

/// What differs of what is trained, but for the number of steps.
std::vector<std::string> differing(const settings::RunConfig& now, const settings::RunConfig& then) {
  std::vector<std::string> paths = settings::changed_what(now, then);
  std::erase_if(paths, may_grow);
  // Of a run that recorded no day: whether this is the one shows in the tokens.
  if (then.data.template_date == "auto") std::erase(paths, "data.template_date");
  return paths;
}

Error first_of(const Recorded& recorded, const std::vector<std::string>& paths, size_t count,
               const settings::RunConfig& now, const settings::RunConfig& then) {
  return changed(recorded, paths.front(), text_of(paths.front(), now), text_of(paths.front(), then),
                 count - 1);
}

Result<std::vector<std::string>> check_settings(const Checkpoint& from, const settings::RunConfig& now,
                                                const std::vector<std::string>& with, const Note& note) {
  PLIMSOLL_ASSIGN(const settings::RunConfig then, read_run(from));
  std::vector<std::string> paths = differing(now, then);
  std::vector<std::string> changes = take_asked_for(paths, with, now, then, from.manifest.step);
  const bool both_scale = now.scales_loss() && then.scales_loss();
  const auto others = std::stable_partition(paths.begin(), paths.end(),
                                            [&](const auto& p) { return !may_convert(p, now, both_scale); });
  if (others != paths.begin())
    return first_of({from}, paths, static_cast<size_t>(others - paths.begin()), now, then);
  auto exact = settings::check_conversion(then.training, now.training);
  if (!exact) return std::move(exact).error().at(from.path);
  for (const std::string& changed_path : paths)
    if (note)
      note(fmt::format("{} is {}, and the checkpoint was made with {}: its state is converted exactly",
                       changed_path, text_of(changed_path, now), text_of(changed_path, then)));
  for (const std::string& change : changes)
    if (note) note("after " + change);
  return changes;
}

/// Settings that leave the training as it is, and change which model final/ holds, or in what form.
std::vector<std::string> settings_of_final(const Checkpoint& record, const settings::RunConfig& now) {
  std::vector<std::string> paths = {"output.dtype", "output.max_shard_size",
                                    "training.load_best_model_at_end"};
  const bool stopped_early = record.manifest.step < record.manifest.total_steps;
  if (now.training.load_best_model_at_end || stopped_early)
    paths.insert(paths.end(), {"training.metric_for_best_model", "training.greater_is_better"});
  if (stopped_early)
    paths.insert(paths.end(), {"training.early_stopping_patience", "training.early_stopping_threshold"});
  return paths;
}

Status check_finished_settings(const Checkpoint& record, const settings::RunConfig& now) {
  PLIMSOLL_ASSIGN(const settings::RunConfig then, read_run(record));
  std::vector<std::string> paths = differing(now, then);
  for (std::string& path : settings_of_final(record, now))
    if (text_of(path, now) != text_of(path, then)) paths.push_back(std::move(path));
  if (paths.empty()) return Ok{};
  // An adapter over a model, or the other way round, says more than its rank.
  std::stable_partition(paths.begin(), paths.end(), [](const std::string& p) { return p == "lora"; });
  return first_of({record, true}, paths, paths.size(), now, then);
}

/// Sequences or pictures that are computed at once where their number is part of what is trained: what is
/// given, else the whole batch. `has_statistics` of the batch (BatchNorm): a rank's, or of all ranks
/// together.
int64_t coupled_micro_batch(const settings::RunConfig& run, bool has_statistics) {
  const int64_t ranks = has_statistics ? run.distributed.num_ranks() : 1;
  const settings::TrainingSettings training = settings::training_of_rank(run.training, ranks);
  const auto fixed = settings::fixed_batch_split(training);
  const int64_t own = fixed ? fixed->micro_batch_size : training.global_batch_size;
  return run.model.norm_statistics == settings::NormStatisticsWord::kSynchronised ? own * ranks : own;
}

Status check_micro_batch(const Recorded& recorded, const settings::RunConfig& config,
                         const CheckpointManifest& now) {
  if (!now.couples_micro_batch) return Ok{};
  PLIMSOLL_ASSIGN(const settings::RunConfig then, read_run(recorded.checkpoint));
  const int64_t mine = coupled_micro_batch(config, now.takes_batch_statistics),
                theirs = coupled_micro_batch(then, now.takes_batch_statistics);
  if (mine == theirs) return Ok{};
  return changed(recorded, "training.micro_batch_size", std::to_string(mine), std::to_string(theirs));
}

Status check_model(const Recorded& recorded, const io::ConfigJson& model) {
  PLIMSOLL_ASSIGN(const io::ConfigJson stored,
                  io::read_config_json(recorded.checkpoint.path + "/config.json"));
  const io::ConfigJson now = models::with_class(model), then = models::with_class(stored);
  const auto text = [](const io::Tree* value) { return value == nullptr ? "absent" : io::to_json(*value); };
  std::map<std::string, bool> fields;  // the union of both
  for (const auto* config : {&now, &then})
    for (const auto& [name, value] : config->fields().members) fields[name] = true;
  for (const auto& [name, unused] : fields) {
    const io::Tree *mine = now.fields().find(name), *theirs = then.fields().find(name);
    if (is_remark(name) || text(mine) == text(theirs)) continue;
    // Its checkpoints have one for who opens them; the run goes by lengths (ModelFileSet::pad_token).
    if (name == "pad_token_id" && is_sequence_classifier(now) && !now.has(name)) continue;
    return changed(recorded, "the model's " + name, text(mine), text(theirs));
  }
  return Ok{};
}

Status check_data(const Recorded& recorded, const CheckpointManifest& now) {
  const CheckpointManifest& then = recorded.checkpoint.manifest;
  if (now.num_data_tokens != then.num_data_tokens || now.num_sequences != then.num_sequences)
    return changed(recorded, "data.train", fmt::format("{} tokens", now.num_data_tokens),
                   fmt::format("{} tokens", then.num_data_tokens));
  if (now.weights != then.weights && now.weights != 0 && then.weights != 0)
    return changed(recorded, "model.path",
                   fmt::format("a model whose weights have the checksum {:016x}", now.weights),
                   fmt::format("{:016x}", then.weights));
  if (now.data != then.data)
    return changed(recorded, "data.train", fmt::format("data with the checksum {:016x}", now.data),
                   fmt::format("data with the checksum {:016x}", then.data));
  return Ok{};
}

Error other_steps(const Recorded& recorded, const settings::RunConfig& config,
                  const CheckpointManifest& now) {
  return changed(recorded, config.training.max_steps ? "training.max_steps" : "training.num_epochs",
                 fmt::format("{} steps", now.total_steps),
                 fmt::format("{} steps", recorded.checkpoint.manifest.total_steps));
}

}  // namespace

Result<std::vector<std::string>> check_same_run(const Checkpoint& checkpoint,
                                                const settings::RunConfig& config,
                                                const io::ConfigJson& model, const CheckpointManifest& now,
                                                const std::vector<std::string>& with, const Note& note) {
  const Recorded recorded{checkpoint};
  // The model first: of a whole config in the run file it names the field.
  PLIMSOLL_TRY(check_model(recorded, model));
  // Settings before the data, which they change: packing is packing, and no other text.
  PLIMSOLL_ASSIGN(auto changes, check_settings(checkpoint, config, with, note));
  PLIMSOLL_TRY(check_micro_batch(recorded, config, now));
  PLIMSOLL_TRY(check_data(recorded, now));
  if (now.total_steps < checkpoint.manifest.total_steps) return other_steps(recorded, config, now);
  return changes;
}

Status check_finished_run(const Checkpoint& record, const settings::RunConfig& config,
                          const io::ConfigJson& model, const CheckpointManifest& now, bool may_grow) {
  const Recorded recorded{record, /*finished=*/true};
  PLIMSOLL_TRY(check_model(recorded, model));
  PLIMSOLL_TRY(check_finished_settings(record, config));
  PLIMSOLL_TRY(check_micro_batch(recorded, config, now));
  PLIMSOLL_TRY(check_data(recorded, now));
  const int64_t then = record.manifest.total_steps;
  if (now.total_steps < then) return other_steps(recorded, config, now);
  if (now.total_steps == then || may_grow) return Ok{};
  Error error = other_steps(recorded, config, now);
  error.what += ", and no checkpoint is left to resume from";
  error.hint =
      "start a new run in another output.dir, or with --resume never; a run with output.save_steps can be "
      "resumed";
  return error;
}

}  // namespace plimsoll::checkpoints
