#include "models/presets.h"

#include <algorithm>
#include <cctype>

#include "io/suggest.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

template <typename Visit>
void for_each_preset(Visit visit) {
  for (const auto family : kFamilies)
    for (const Preset& preset : family().presets) visit(preset);
}

/// Without what spellings of one architecture differ in: who publishes it, capitals, and what was made of the
/// base model.
std::string plain_name(std::string_view spelling) {
  std::string name(spelling.substr(spelling.rfind('/') + 1));
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.starts_with("meta-")) name.erase(0, 5);
  for (const std::string_view made : {"-hf", "-base", "-instruct", "-chat", "-it"})
    for (size_t at = 0; (at = name.find(made, at)) != std::string::npos;) {
      const size_t end = at + made.size();
      if (end == name.size() || name[end] == '-')
        name.erase(at, made.size());
      else
        at = end;
    }
  return name;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for_each_preset([&](const Preset& preset) { names.emplace_back(preset.name); });
  return names;
}

std::vector<PresetInfo> presets() {
  std::vector<PresetInfo> list;
  for_each_preset([&](const Preset& preset) {
    list.push_back({preset.name, preset.hub_id, preset.licence, preset.parameters});
  });
  return list;
}

std::optional<std::string_view> find_preset(std::string_view spelling) {
  std::optional<std::string_view> exact, plain;
  const std::string name = plain_name(spelling);
  for_each_preset([&](const Preset& preset) {
    if (!exact && preset.name == spelling) exact = preset.name;
    if (!plain && (plain_name(preset.name) == name || plain_name(preset.hub_id) == name)) plain = preset.name;
  });
  return exact ? exact : plain;
}

std::string_view preset_processor(std::string_view name) {
  const std::optional<std::string_view> found = find_preset(name);
  std::string_view processor;
  for_each_preset([&](const Preset& preset) {
    if (found && preset.name == *found) processor = preset.processor;
  });
  return processor;
}

Result<io::ConfigJson> preset_config(std::string_view name) {
  const std::optional<std::string_view> found = find_preset(name);
  std::string_view config;
  for_each_preset([&](const Preset& preset) {
    if (preset.name == found) config = preset.config;
  });
  if (found) return io::parse_config_json(config, "preset " + std::string(*found));
  return Error{ErrorCode::kInvalidArgument, "there is no preset '" + std::string(name.substr(0, 60)) + "'",
               "model.preset", io::nearest_hint(name, preset_names())};
}

}  // namespace plimsoll::models
