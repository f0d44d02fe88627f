#include "train/checkpoint_resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "io/file.h"
#include "runtime/session.h"
#include "train/settings.h"

namespace plimsoll::train {
namespace {

constexpr const char* kAnew = "set it back, or start anew with --resume never or another output.dir";

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

Error changed(const std::string& setting, const std::string& now, const std::string& then,
              const std::string& checkpoint, size_t others) {
  std::string what =
      fmt::format("{} is {}, but the checkpoint was made with {}", setting, shortened(now), shortened(then));
  if (others > 0) what += fmt::format(" (and {} more settings differ)", others);
  return Error{ErrorCode::kInvalidArgument, what, checkpoint, kAnew};
}

Status check_settings(const std::string& checkpoint, const RunConfig& now) {
  const std::string path = checkpoint + "/run.yaml";
  PLIMSOLL_ASSIGN(const std::string text, read_small_file(path, TreeLimits{}.max_bytes));
  auto then = parse_run_config(text, path);
  if (!then) return std::move(then).error();
  std::vector<std::string> paths = changed_what(now, *then);
  paths.erase(std::remove_if(paths.begin(), paths.end(), may_grow), paths.end());
  if (paths.empty()) return Ok{};
  const Setting* setting = find_setting(paths.front());
  const auto text_of = [&](const RunConfig& run) {
    if (setting != nullptr) return setting_text(*setting, run);
    return std::string((paths.front() == "lora" ? run.lora.enabled : run.quantization.enabled) ? "on"
                                                                                               : "off");
  };
  return changed(paths.front(), text_of(now), text_of(*then), checkpoint, paths.size() - 1);
}

Status check_model(const std::string& checkpoint, const ConfigJson& model) {
  PLIMSOLL_ASSIGN(const ConfigJson then, read_config_json(checkpoint + "/config.json"));
  const auto text = [](const Tree* value) { return value == nullptr ? "absent" : to_json(*value); };
  std::map<std::string, bool> fields;  // the union of both
  for (const auto* config : {&model, &then})
    for (const auto& [name, value] : config->fields().members) fields[name] = true;
  for (const auto& [name, unused] : fields) {
    const Tree *mine = model.fields().find(name), *theirs = then.fields().find(name);
    if (is_remark(name) || text(mine) == text(theirs)) continue;
    return changed("the model's " + name, text(mine), text(theirs), checkpoint, 0);
  }
  return Ok{};
}

Status check_data(const Checkpoint& checkpoint, bool has_max_steps, const CheckpointManifest& now) {
  const CheckpointManifest& then = checkpoint.manifest;
  if (now.num_data_tokens != then.num_data_tokens || now.num_sequences != then.num_sequences)
    return changed("data.train", fmt::format("{} tokens", now.num_data_tokens),
                   fmt::format("{} tokens", then.num_data_tokens), checkpoint.path, 0);
  if (now.data != then.data)
    return changed("data.train", fmt::format("data with the checksum {:016x}", now.data),
                   fmt::format("data with the checksum {:016x}", then.data), checkpoint.path, 0);
  if (now.total_steps < then.total_steps)
    return changed(has_max_steps ? "training.max_steps" : "training.num_epochs",
                   fmt::format("{} steps", now.total_steps), fmt::format("{} steps", then.total_steps),
                   checkpoint.path, 0);
  return Ok{};
}

bool fits(const CheckpointTensor& stored, const StoredTensor& wanted) {
  return stored.dtype == wanted.entry.dtype && stored.shape == wanted.entry.shape &&
         stored.bytes == static_cast<int64_t>(wanted.bytes.size());
}

}  // namespace

Result<ResumeChoice> choose_checkpoints(const std::string& resume, const std::string& output_dir) {
  if (resume == "never") return ResumeChoice{};
  if (resume == "auto") return ResumeChoice{find_checkpoints(output_dir)};
  std::string folder = resume;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::filesystem::path path(folder);
  std::error_code ignored;
  if (std::filesystem::exists(path / kCheckpointFile, ignored) ||
      (checkpoint_step(path.filename().string()) && is_checkpoint(folder)))
    return ResumeChoice{{{0, folder}}, true};
  ResumeChoice choice{find_checkpoints(folder)};
  if (!choice.candidates.empty()) return choice;
  return Error{ErrorCode::kBadData, "no checkpoint lies there", resume,
               "--resume takes auto, never or a checkpoint's folder"};
}

Status pass_over(const ResumeChoice& choice, size_t at, Error error, const Note& note) {
  const bool unread = error.code == ErrorCode::kIo;
  if ((!unread && error.code != ErrorCode::kBadData) || choice.only_this) return error;
  note((unread ? "passed over, because it cannot be read: " : "passed over, because it is damaged: ") +
       error.message());
  if (at + 1 < choice.candidates.size()) return Ok{};
  const std::string folder = folder_of(choice.candidates.front().path);
  if (unread)
    return Error{ErrorCode::kIo, "every checkpoint is damaged or cannot be read", folder,
                 "check permissions and the disk, or start anew with --resume never"};
  return Error{ErrorCode::kBadData, "every checkpoint is damaged", folder, "start anew with --resume never"};
}

Result<std::optional<Checkpoint>> open_first_intact(const ResumeChoice& choice, size_t& from,
                                                    const Note& note) {
  for (; from < choice.candidates.size(); ++from) {
    auto opened = open_checkpoint(choice.candidates[from].path);
    if (opened && !choice.only_this && opened->manifest.step != choice.candidates[from].step)
      opened = Error{ErrorCode::kBadData, "the folder is named for another step than it holds",
                     choice.candidates[from].path, "give it its name back"};
    if (opened) return std::optional(std::move(*opened));
    PLIMSOLL_TRY(pass_over(choice, from, std::move(opened).error(), note));
  }
  return std::optional<Checkpoint>();
}

Status check_same_run(const Checkpoint& checkpoint, const RunConfig& config, const ConfigJson& model,
                      const CheckpointManifest& now) {
  // The model first: of a whole config in the run file it names the field.
  PLIMSOLL_TRY(check_model(checkpoint.path, model));
  PLIMSOLL_TRY(check_settings(checkpoint.path, config));
  return check_data(checkpoint, config.training.max_steps.has_value(), now);
}

Status load_checkpoint(const Checkpoint& checkpoint, const Prepared& prepared,
                       const runtime::Session& session, int num_threads) {
  const std::pair<const char*, std::vector<StoredTensor>> parts[] = {
      {"model.safetensors", parameter_tensors(*prepared.model, session)},
      {"optimizer.safetensors", optimizer_tensors(*prepared.model, session)}};
  for (const auto& [name, tensors] : parts) {
    // A run in another precision had no loss scale: it starts at its first value.
    std::vector<StoredTensor> wanted = tensors;
    std::erase_if(wanted, [](const StoredTensor& t) { return t.entry.name == optimizers::kScalerState; });
    if (wanted.empty() && checkpoint.manifest.find_file(name) == nullptr) continue;
    const auto not_there = [&, file = name](const std::string& what) {
      return Error{ErrorCode::kBadData, what, checkpoint.path + "/" + file,
                   "start anew with --resume never or another output.dir"};
    };
    const CheckpointFile* file = checkpoint.manifest.find_file(name);
    if (file == nullptr) return not_there("the checkpoint lacks a file");
    std::map<std::string_view, const StoredTensor*> places;
    for (const StoredTensor& t : tensors) places[t.entry.name] = &t;
    const TensorDestination destination = [&](const CheckpointTensor& stored) {
      const auto place = places.find(stored.name);
      return place == places.end() || !fits(stored, *place->second) ? std::span<std::byte>()
                                                                    : place->second->bytes;
    };
    std::set<std::string_view> there;
    for (const CheckpointTensor& stored : file->tensors)
      if (!destination(stored).empty()) there.insert(stored.name);
    for (const StoredTensor& t : wanted)
      if (!there.contains(t.entry.name))
        return not_there("the tensor " + t.entry.name + " is missing or has another shape");
    PLIMSOLL_TRY(read_checkpoint_tensors(checkpoint, *file, destination, num_threads));
  }
  return Ok{};
}

std::vector<std::string> stale_checkpoints(const std::string& output_dir,
                                           const std::optional<Checkpoint>& taken) {
  std::vector<std::string> stale;
  std::error_code ignored;
  const bool ours =
      taken && std::filesystem::equivalent(folder_of(std::filesystem::path(taken->path).lexically_normal()),
                                           output_dir, ignored);
  for (const FoundCheckpoint& found : find_checkpoints(output_dir))
    if (!ours || found.step > taken->manifest.step) stale.push_back(found.path);
  return stale;
}

}  // namespace plimsoll::train
