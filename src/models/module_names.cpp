#include "models/module_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/pattern.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

/// A pattern that is none matches nothing, after check_pattern has said so.
bool matches_whole(const std::string& pattern, std::string_view name) {
  const auto parsed = Pattern::parse(pattern);
  return parsed && parsed->matches(name);
}

/// The numbers between dots of a module's name, each with what stands before its dot.
std::vector<std::pair<std::string_view, int64_t>> numbers_in(std::string_view module) {
  std::vector<std::pair<std::string_view, int64_t>> numbers;
  for (size_t dot = module.find('.'); dot != std::string_view::npos; dot = module.find('.', dot + 1)) {
    const std::string_view rest = module.substr(dot + 1);
    int64_t number = 0;
    const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (code == std::errc() && end != rest.data() + rest.size() && *end == '.' && rest[0] != '-')
      numbers.emplace_back(module.substr(0, dot), number);
  }
  return numbers;
}

}  // namespace

Status check_pattern(std::string_view setting, const std::string& pattern) {
  const auto parsed = Pattern::parse(pattern);
  if (parsed) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}: '{}' is no regular expression: {}", setting, pattern.substr(0, 100),
                           parsed.error().what),
               {},
               "a plain string is a pattern of whole names, such as .*\\.(q|v)_proj; names go in a list"};
}

std::vector<std::string> default_target_modules(std::string_view model_type) {
  const Family* family = find_family(model_type);
  if (family == nullptr) return {};
  return {family->lora_targets.begin(), family->lora_targets.end()};
}

std::string last_part(std::string_view name) { return std::string(name.substr(name.rfind('.') + 1)); }

bool names_module(std::string_view name, std::string_view module) {
  if (name.empty() || !module.ends_with(name)) return false;
  return module.size() == name.size() || module[module.size() - name.size() - 1] == '.';
}

bool matches(const ModuleNames& names, const std::string& module) {
  if (names.is_pattern) return matches_whole(names.names.front(), module);
  return std::any_of(names.names.begin(), names.names.end(),
                     [&](const std::string& name) { return names_module(name, module); });
}

bool is_within(std::string_view module, std::string_view name) {
  for (;;) {
    if (names_module(name, module)) return true;
    const size_t dot = module.rfind('.');
    if (dot == std::string_view::npos) return false;
    module = module.substr(0, dot);
  }
}

bool is_saved_by(std::string_view module, std::string_view entry) {
  if (entry.empty()) return false;
  for (;;) {
    if (module.ends_with(entry)) return true;
    const size_t dot = module.rfind('.');
    if (dot == std::string_view::npos) return false;
    module = module.substr(0, dot);
  }
}

std::string layers_name(const std::string& module) {
  const auto numbers = numbers_in(module);
  return numbers.empty() ? "" : last_part(numbers.front().first);
}

std::optional<int64_t> layer_index(const std::string& module, const std::vector<std::string>& layers) {
  const auto numbers = numbers_in(module);
  for (const auto& [before, number] : numbers) {
    // Without names the first number that has two parts before it.
    if (layers.empty() && before.find('.') != std::string_view::npos) return number;
    for (const std::string& layer : layers)
      if (matches_end(layer, std::string(before))) return number;
  }
  return std::nullopt;
}

bool matches_end(const std::string& pattern, const std::string& module) {
  return matches_whole("(?:.*\\.)?(?:" + pattern + ")", module);
}

}  // namespace plimsoll::models
