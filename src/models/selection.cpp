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

/// The first of the names that begins as the pattern may have meant to: with the nearest of what names have
/// in as many parts. Empty where none is near.
std::string nearest_beginning(std::string text, const std::vector<std::string>& names) {
  while (text.ends_with('.')) text.pop_back();
  const auto parts = std::count(text.begin(), text.end(), '.') + 1;
  std::vector<std::string> beginnings;
  for (const std::string& name : names) {
    size_t end = 0;
    for (auto part = parts; part > 0 && end != std::string::npos; --part) end = name.find('.', end + 1);
    beginnings.push_back(name.substr(0, end));
  }
  const std::string nearest = io::nearest_name(text, beginnings);
  const auto found = std::find(beginnings.begin(), beginnings.end(), nearest);
  return found == beginnings.end() ? "" : names[static_cast<size_t>(found - beginnings.begin())];
}

std::string hint_for(const std::string& pattern, const Model& model, const std::vector<std::string>& names) {
  if (const auto tied = model.tied_head(); tied && matches_glob(pattern, tied->head))
    return fmt::format("{} is tied to {}: name that", tied->head, tied->embedding);
  // What a pattern stands for is as long as a name only where it has no stars; so its parts are looked for.
  std::vector<std::string> nearest;
  const std::string text = plain_text(pattern);
  for (const std::string& name : names)
    if (name.find(text) != std::string::npos && nearest.size() < 2) nearest.push_back(name);
  if (nearest.empty()) nearest.push_back(nearest_beginning(text, names));
  const std::string near = nearest.front().empty()
                               ? "the first is " + names.front()
                               : fmt::format("the nearest is {}", fmt::join(nearest, ", "));
  return near + "; patterns are of whole names: a star takes what they leave out";
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

Role role_of(const Model& model, const std::string& name, const Selection& selection) {
  Role role;
  role.trained = !matches_any(selection.freeze, name) || matches_any(selection.unfreeze, name);
  // Beside adapters the base stays as it is.
  if (const auto& adapters = model.adapters())
    role.trained = role.trained && adapters->keys.contains(name) && !adapters->still.contains(name);
  for (size_t g = 0; g < selection.groups.size() && role.group == 0; ++g)
    if (matches_any(selection.groups[g], name)) role.group = static_cast<int32_t>(g) + 1;
  return role;
}

/// Tensors that learn and whose storage the update would not treat tensor by tensor.
void keep_apart(const Model& model, const Selection& selection, std::span<Role> roles) {
  for (const Parameter& p : model.parameters()) {
    const auto own = roles.first(p.views.size());
    roles = roles.subspan(own.size());
    std::vector<ir::Shape> shapes;
    for (const ParameterView& view : p.views) shapes.push_back(view.shape);
    if (!own.front().trained || selection.lie_together(shapes)) continue;
    for (Role& role : own) role.is_apart = true;
  }
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
  for (const std::string& name : names) roles.push_back(role_of(model, name, selection));
  if (std::none_of(roles.begin(), roles.end(), [](const Role& r) { return r.trained; }))
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("training.freeze freezes all {} parameters: nothing is left to train", names.size()),
        {},
        "freeze fewer, or name trained parameters in training.unfreeze"};
  // A frozen tensor has no hyper-parameters: its group divides nothing.
  for (Role& role : roles)
    if (!role.trained) role.group = 0;
  if (selection.lie_together) keep_apart(model, selection, roles);
  model.divide(roles);
  return Ok{};
}

}  // namespace plimsoll::models
