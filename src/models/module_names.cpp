#include "models/module_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>

namespace plimsoll::models {
namespace {

/// Longer ones are nobody's; std::regex recurses over its text.
constexpr size_t kMaxPattern = 2000;

/// std::regex throws for what is none; here it matches nothing, after check_pattern has said so.
std::optional<std::regex> regex_of(const std::string& pattern) {
  if (pattern.size() > kMaxPattern) return std::nullopt;
  try {
    return std::regex(pattern, std::regex::ECMAScript);
  } catch (const std::regex_error&) {
    return std::nullopt;
  }
}

bool matches_whole(const std::string& pattern, const std::string& name, std::smatch* parts = nullptr) {
  const auto regex = regex_of(pattern);
  std::smatch own;
  try {
    return regex && std::regex_match(name, parts != nullptr ? *parts : own, *regex);
  } catch (const std::regex_error&) {  // too complex for this name
    return false;
  }
}

}  // namespace

Status check_pattern(std::string_view setting, const std::string& pattern) {
  if (regex_of(pattern)) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}: '{}' is no regular expression", setting, pattern.substr(0, 100)),
               {},
               "a plain string is a pattern of whole names, such as .*\\.(q|v)_proj; names go in a list"};
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

std::optional<int64_t> layer_index(const std::string& module, const std::vector<std::string>& layers) {
  std::smatch parts;
  if (layers.empty()) {
    if (!matches_whole(R"(.*?\.[^.]*\.(\d{1,9})\..*)", module, &parts)) return std::nullopt;
  } else if (std::none_of(layers.begin(), layers.end(), [&](const std::string& layer) {
               return matches_whole("(?:|.*?\\.)" + layer + R"(\.(\d{1,9})\..*)", module, &parts);
             })) {
    return std::nullopt;
  }
  const std::string digits = parts[parts.size() - 1].str();
  int64_t index = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), index);
  return index;
}

bool matches_end(const std::string& pattern, const std::string& module) {
  return matches_whole("(?:.*\\.)?(?:" + pattern + ")", module);
}

}  // namespace plimsoll::models
