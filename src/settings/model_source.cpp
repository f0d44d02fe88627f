// Finds the model's config.json: a folder, a file, the hub's cache, a preset or the run file
// itself.
#include <filesystem>

#include "io/adapter_folder.h"
#include "io/file.h"
#include "io/suggest.h"
#include "models/presets.h"
#include "models/timm.h"
#include "settings/run_config.h"
#include "settings/run_document.h"

namespace plimsoll::settings {
namespace {

Result<io::ConfigJson> config_at(const std::string& path) {
  PLIMSOLL_ASSIGN(const bool is_there, io::path_exists(path));
  PLIMSOLL_ASSIGN(const bool is_folder, io::is_folder(path));
  if (is_there && !is_folder) return models::read_model_config(path);
  auto folder = io::find_whole_model(path);
  if (!folder) {
    Error error = std::move(folder).error();
    if (const auto preset = models::find_preset(path))
      error.hint += "; to plan without its files: model.preset=" + std::string(*preset);
    return error;
  }
  return models::read_model_config(*folder + "/config.json");
}

Result<io::ConfigJson> base_config(const ModelSettings& model) {
  if (!model.path.empty()) return config_at(model.path);
  if (!model.preset.empty()) return models::preset_config(model.preset);
  if (!model.config.is_null()) return io::ConfigJson(model.config, "model.config");
  return Error{ErrorCode::kInvalidArgument, "no model is named", "model", "set model.path or model.preset"};
}

}  // namespace

Result<io::ConfigJson> load_model_config(const ModelSettings& model) {
  PLIMSOLL_ASSIGN(const io::ConfigJson base, base_config(model));
  if (model.overrides.is_null()) return base;
  io::Tree fields = base.fields();
  fields.merge(model.overrides);
  return io::ConfigJson(std::move(fields), base.source());
}

Result<std::string> model_directory(const ModelSettings& model) {
  if (model.path.empty()) return std::string();
  PLIMSOLL_ASSIGN(const bool is_there, io::path_exists(model.path));
  PLIMSOLL_ASSIGN(const bool is_folder, io::is_folder(model.path));
  if (!is_there || is_folder) return io::find_whole_model(model.path);
  const std::filesystem::path path(model.path);
  return path.has_parent_path() ? path.parent_path().string() : std::string(".");
}

bool starts_pretrained(const ModelSettings& model) {
  return model.init == FirstWeights::kPretrained ||
         (model.init == FirstWeights::kAuto && !model.path.empty());
}

Status check_overrides(const ModelSettings& model, const io::ConfigJson& config) {
  for (const std::string& field : config.unread_fields()) {
    const bool overridden = model.overrides.find(field) != nullptr;
    if (!overridden && !model.config.find(field)) continue;
    const std::string near = io::did_you_mean(field, config.known_fields());
    const std::string setting = overridden ? "model.overrides" : "model.config";
    return Error{ErrorCode::kInvalidArgument,
                 setting + ": the model has no field '" + field.substr(0, 60) + "'", config.source(),
                 missing_blank_hint(field, *(overridden ? model.overrides : model.config).find(field),
                                    near.empty() ? io::nearest_hint(field, config.known_fields()) : near)};
  }
  return Ok{};
}

}  // namespace plimsoll::settings
