// Generates --help, the documentation's table and the recorded run file from the list of settings.
#include <fmt/format.h>

#include <algorithm>

#include "settings/effect.h"
#include "settings/harmless_keys.h"
#include "settings/run_paths.h"
#include "settings/settings.h"
#include "settings/settings_alias.h"

namespace plimsoll::settings {
namespace {

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    parts.emplace_back(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return parts;
}

std::string escape_table(std::string text) {
  for (size_t i = 0; (i = text.find('|', i)) != std::string::npos; i += 2) text.insert(i, "\\");
  return text;
}

/// An optional section that is not in use: printed as null, its settings left out.
bool is_off(std::string_view section, const RunConfig& config) {
  return (section == "lora" && !config.lora.enabled) ||
         (section == "quantization" && !config.quantization.enabled);
}

}  // namespace

std::string setting_help(const Setting& setting) {
  const OnlyWith& needs = setting.only_with;
  std::string text = setting.help;
  if (!needs.path.empty()) text += "; only with " + needs.path;
  for (size_t i = 0; i < needs.values.size(); ++i) text += (i == 0 ? ": " : ", ") + needs.values[i];
  if (needs.or_overrides) text += ", or an override of it";
  if (setting.field == nullptr) text += " (not available in this version)";
  return text;
}

std::string run_config_yaml(const RunConfig& given, const std::string& folder) {
  const RunConfig config = folder.empty() ? given : with_paths_from(given, folder);
  std::string out;
  std::vector<std::string> open;  // sections whose lines are being written
  for (const Setting& setting : settings()) {
    const std::vector<std::string> parts = split(setting.path);
    if (is_off(parts.front(), config)) {
      if (open.empty() || open.front() != parts.front()) out += parts.front() + ": null\n";
      open = {parts.front()};
      continue;
    }
    if (setting.field == nullptr || !has_effect(setting, config)) continue;
    size_t depth = 0;
    while (depth < open.size() && depth + 1 < parts.size() && open[depth] == parts[depth]) ++depth;
    open.resize(depth);
    for (; depth + 1 < parts.size(); ++depth) {
      out += std::string(2 * depth, ' ') + parts[depth] + ":\n";
      open.push_back(parts[depth]);
    }
    out += std::string(2 * depth, ' ') + parts.back() + ": " + setting_text(setting, config) + "\n";
  }
  return out;
}

std::vector<std::string> changed_what(const RunConfig& a, const RunConfig& b) {
  std::vector<std::string> changed;
  for (const Setting& setting : settings())
    if (setting.kind == SettingKind::kWhat && setting_text(setting, a) != setting_text(setting, b))
      changed.push_back(setting.path);
  if (a.lora.enabled != b.lora.enabled) changed.emplace_back("lora");
  if (a.quantization.enabled != b.quantization.enabled) changed.emplace_back("quantization");
  return changed;
}

std::string settings_markdown() {
  std::string out =
      "# Settings\n\n"
      "Every setting of a run file, in its order. The same names work on the command line as `name=value`, "
      "where the value is YAML\n"
      "and the last one wins. A setting affects either the *results*, and the planner never changes it, or "
      "only\n"
      "*speed* and memory. Plimsoll refuses values that are not available in this version, and values "
      "without\n"
      "effect; if a later override removed the effect, a note says so. This page is generated from\n"
      "`src/settings/settings.cpp`; a test compares them.\n\n"
      "| setting | default | takes | affects | meaning |\n"
      "| --- | --- | --- | --- | --- |\n";
  const RunConfig defaults;
  for (const Setting& setting : settings()) {
    if (setting.is_for_tests) continue;
    out += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", setting.path, setting_text(setting, defaults),
                       escape_table(setting_type(setting)),
                       setting.kind == SettingKind::kHow ? "speed" : "results",
                       escape_table(setting_help(setting)));
  }
  out += "\n" + alias_markdown() + "\n" + harmless_markdown();
  return out;
}

std::string settings_help() {
  std::string out;
  const RunConfig defaults;
  size_t widest = 0;
  for (const Setting& setting : settings()) widest = std::max(widest, setting.path.size());
  for (const Setting& setting : settings()) {
    if (setting.is_for_tests) continue;
    out += fmt::format("  {:<{}}  {} [{}; {}]\n", setting.path, widest, setting_help(setting),
                       setting_type(setting), setting_text(setting, defaults));
  }
  return out;
}

}  // namespace plimsoll::settings
