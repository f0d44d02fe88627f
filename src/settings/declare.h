// Helpers that declare settings: a function for each kind of field, and what is true of a group of
// them at once.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settings/settings.h"

// The member's spelling is the setting's path, so the two cannot disagree.
#define PLIMSOLL_FIELD(member) #member, [](RunConfig & run) -> SettingField { return &run.member; }

#define PLIMSOLL_CHOICE(member) words_of(RunConfig{}.member), PLIMSOLL_FIELD(member)

namespace plimsoll::settings {

constexpr SettingKind kWhat = SettingKind::kWhat;
constexpr SettingKind kContent = SettingKind::kContent;
constexpr SettingKind kHow = SettingKind::kHow;

constexpr double kMaxCount = 0x1p40;   // steps, intervals
constexpr double kMaxTokens = 0x1p28;  // a sequence

using Accessor = SettingField (*)(RunConfig&);
using Words = std::vector<std::string>;

/// Anything without a range: strings, lists, switches, budgets, maps.
inline Setting plain(std::string path, Accessor field, SettingKind kind, std::string help,
                     Words choices = {}) {
  return {.path = std::move(path),
          .kind = kind,
          .help = std::move(help),
          .field = field,
          .choices = std::move(choices)};
}

inline Setting number(std::string path, Accessor field, SettingKind kind, std::string help, double least,
                      double most, std::string absent = "null") {
  return {.path = std::move(path),
          .kind = kind,
          .help = std::move(help),
          .field = field,
          .least = least,
          .most = most,
          .absent = std::move(absent)};
}

inline Setting above(std::string path, Accessor field, SettingKind kind, std::string help, double least,
                     double most) {
  Setting setting = number(std::move(path), field, kind, std::move(help), least, most);
  setting.above_least = true;
  return setting;
}

/// One of an enum's words; of the field's own with PLIMSOLL_CHOICE(member).
inline Setting choice(Words words, std::string path, Accessor field, SettingKind kind, std::string help) {
  return plain(std::move(path), field, kind, std::move(help), std::move(words));
}

/// A setting of which nothing but the name is known yet; `inert` are the values that ask for nothing.
inline Setting planned(std::string path, SettingKind kind, std::string help, std::string instead,
                       Words inert = {}) {
  return {.path = std::move(path),
          .kind = kind,
          .help = std::move(help),
          .available = std::move(inert),
          .instead = std::move(instead)};
}

/// The settings of `list` that one of `names` names, or whose paths begin with one that ends in a dot or a
/// dash, are as `change` makes them.
template <typename Change>
void for_group(std::vector<Setting>& list, std::initializer_list<std::string_view> names, Change change) {
  for (Setting& setting : list)
    for (const std::string_view name : names) {
      const bool is_prefix = name.ends_with('.') || name.ends_with('_');
      if (setting.path == name || (is_prefix && setting.path.starts_with(name))) change(setting);
    }
}

/// They have an effect only with these values of another setting.
inline void only_with(std::vector<Setting>& list, std::initializer_list<std::string_view> names,
                      const OnlyWith& needs) {
  for_group(list, names, [&](Setting& setting) { setting.only_with = needs; });
}

/// They name files or folders.
inline void paths(std::vector<Setting>& list, std::initializer_list<std::string_view> names) {
  for_group(list, names, [](Setting& setting) { setting.is_path = true; });
}

/// This version has these values alone.
inline void takes_only(std::vector<Setting>& list, std::string_view path, const Words& available,
                       const std::string& instead = {}) {
  for_group(list, {path}, [&](Setting& setting) {
    setting.available = available;
    setting.instead = instead;
  });
}

/// The settings of `training`.
void add_training_settings(std::vector<Setting>& list);
/// Those of `lora`.
void add_lora_settings(std::vector<Setting>& list);
/// Those of `data.images`.
void add_image_settings(std::vector<Setting>& list);

}  // namespace plimsoll::settings
