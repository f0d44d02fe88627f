#include "settings/run_paths.h"

#include <filesystem>
#include <string_view>
#include <variant>

#include "settings/settings.h"

namespace plimsoll::settings {
namespace {

namespace fs = std::filesystem;

/// Every path of the run, by its setting.
template <typename Change>
void for_paths(RunConfig& config, Change change) {
  for (const Setting& setting : settings()) {
    if (!setting.is_path || setting.field == nullptr) continue;
    const SettingField field = setting.field(config);
    if (auto* const* text = std::get_if<std::string*>(&field)) change(setting, **text);
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&field))
      for (std::string& text : **list) change(setting, text);
    if (auto* const* sets = std::get_if<EvalFiles*>(&field))
      for (std::string& text : (*sets)->files) change(setting, text);
  }
}

bool starts_here(std::string_view path) {
  return path == "." || path == ".." || path.starts_with("./") || path.starts_with("../");
}

/// These take words and ids beside paths.
bool is_other(const Setting& setting, const std::string& text) {
  std::error_code ignored;
  return (setting.path == "model.path" || setting.path == "data.tokenizer") && !fs::exists(text, ignored);
}

}  // namespace

void resolve_paths(RunConfig& config, const std::string& folder) {
  for_paths(config, [&](const Setting&, std::string& path) {
    if (starts_here(path)) path = (fs::path(folder) / path).lexically_normal().string();
  });
}

RunConfig with_paths_from(const RunConfig& config, const std::string& folder) {
  RunConfig out = config;
  out.paths = PathBase::kRunFile;
  std::error_code ignored;
  const fs::path from = fs::absolute(folder, ignored).lexically_normal();
  for_paths(out, [&](const Setting& setting, std::string& path) {
    if (path.empty() || is_other(setting, path)) return;
    const std::string related =
        fs::absolute(path, ignored).lexically_normal().lexically_relative(from).string();
    if (!related.empty()) path = starts_here(related) ? related : "./" + related;
  });
  return out;
}

}  // namespace plimsoll::settings
