#include "models/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/glob.h"
#include "io/suggest.h"

namespace plimsoll::models {
namespace {

std::vector<std::string> tensor_names(const Model& model) {
  std::vector<std::string> names;
  for (const Parameter& p : model.parameters())
    for (const ParameterView& view : p.views) names.push_back(view.name);
  return names;
}

bool matches_any(std::span<const std::string> patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches_glob(pattern, name); });
}

/// The pattern as its writer may have meant it: without stars.
std::string plain_text(std::string_view pattern) {
  std::string text;
  for (const char c : pattern)
    if (c != '*') text += c;
  return text;
}

std::string hint_for(const std::string& pattern, const Model& model, const std::vector<std::string>& names) {
  if (const auto tied = model.tied_head(); tied && matches_glob(pattern, tied->head))
    return fmt::format("{} is tied to {}: name that", tied->head, tied->embedding);
  // What a pattern stands for is as long as a name only where it has no stars; so its parts are looked for.
  std::vector<std::string> nearest;
  const std::string text = plain_text(pattern);
  for (const std::string& name : names)
    if (name.find(text) != std::string::npos && nearest.size() < 2) nearest.push_back(name);
  // Of hundreds of long names some are always near enough to show how they are spelled.
  if (nearest.empty())
    nearest.push_back(*std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
      const auto begin = [&](const std::string& name) { return name.substr(0, pattern.size() + 1); };
      return edit_distance(pattern, begin(a)) < edit_distance(pattern, begin(b));
    }));
  return fmt::format("the nearest is {}; patterns are of whole names: a star takes what they leave out",
                     fmt::join(nearest, ", "));
}

Status check_all_match(const std::string& setting, const std::vector<std::string>& patterns,
                       const Model& model, const std::vector<std::string>& names) {
  for (const std::string& pattern : patterns)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return matches_glob(pattern, name); }))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: no parameter matches '{}'", setting, pattern.substr(0, 100)),
                   {},
                   hint_for(pattern, model, names)};
  return Ok{};
}

Role role_of(const std::string& name, const Selection& selection) {
  Role role;
  role.trained = !matches_any(selection.freeze, name) || matches_any(selection.unfreeze, name);
  for (size_t g = 0; g < selection.groups.size() && role.group == 0; ++g)
    if (matches_any(selection.groups[g], name)) role.group = static_cast<int32_t>(g) + 1;
  return role;
}

}  // namespace

Status select(Model& model, const Selection& selection) {
  const std::vector<std::string> names = tensor_names(model);
  PLIMSOLL_TRY(check_all_match("training.freeze", selection.freeze, model, names));
  PLIMSOLL_TRY(check_all_match("training.unfreeze", selection.unfreeze, model, names));
  for (size_t g = 0; g < selection.groups.size(); ++g)
    PLIMSOLL_TRY(
        check_all_match(fmt::format("training.param_groups[{}]", g), selection.groups[g], model, names));
  std::vector<Role> roles;
  for (const std::string& name : names) roles.push_back(role_of(name, selection));
  if (std::none_of(roles.begin(), roles.end(), [](const Role& r) { return r.trained; }))
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("training.freeze freezes all {} parameters: nothing is left to train", names.size()),
        {},
        "freeze fewer, or name what is to learn in training.unfreeze"};
  // A frozen tensor has no hyper-parameters: its group divides nothing.
  for (Role& role : roles)
    if (!role.trained) role.group = 0;
  model.divide(roles);
  return Ok{};
}

}  // namespace plimsoll::models
