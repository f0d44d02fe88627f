#include "importing/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/scalar.h"
#include "settings/effect.h"
#include "settings/settings.h"

namespace plimsoll::importing {
namespace {

/// Whether this version has that value of the setting, which takes it.
bool is_available(const settings::Setting& setting, const io::Tree& value,
                  const settings::RunConfig& config) {
  const std::string text =
      setting.field == nullptr ? to_yaml_flow(value) : settings::setting_text(setting, config);
  if (setting.field == nullptr || !setting.available.empty())
    return std::find(setting.available.begin(), setting.available.end(), text) != setting.available.end();
  return true;
}

/// The value as the setting takes it: numbers may be written as text.
Result<io::Tree> taken(const settings::Setting& setting, const io::Tree& value, settings::RunConfig& config) {
  if (setting.field == nullptr) return value;
  Status status = settings::assign_setting(setting, value, config);
  if (status) return value;
  if (value.kind == io::Tree::Kind::kString) {
    const io::Tree plain = io::resolve_plain_scalar(value.text);
    if (!plain.is_null() && assign_setting(setting, plain, config)) return plain;
    if (const auto is_on = bool_in(value); is_on && assign_setting(setting, io::Tree::of(*is_on), config))
      return io::Tree::of(*is_on);
  }
  return std::move(status).error();
}

std::string not_there(const settings::Setting& setting, const io::Tree& value) {
  const std::string what =
      setting.available.empty() ? setting.path : fmt::format("{} {}", setting.path, to_yaml_flow(value));
  return fmt::format("{} is not available in this version{}", what,
                     setting.instead.empty() ? "" : "; " + setting.instead);
}

/// Another key behind a line that has one.
void name_also(const SourceKey& key, std::string& comment) {
  if (comment.find(key.name) == std::string::npos)
    comment += fmt::format("; {}: {}", key.name, to_yaml_flow(key.value));
}

}  // namespace

std::string_view name_of(Fate fate) {
  return fate == Fate::kMapped ? "mapped" : fate == Fate::kHarmless ? "harmless" : "no equal";
}

std::optional<double> number_in(const io::Tree& value) {
  const io::Tree plain = value.kind == io::Tree::Kind::kString ? io::resolve_plain_scalar(value.text) : value;
  const bool is_number = plain.kind == io::Tree::Kind::kInteger || plain.kind == io::Tree::Kind::kNumber;
  if (!is_number || !std::isfinite(plain.number)) return {};
  return plain.number;
}

std::optional<bool> bool_in(const io::Tree& value) {
  // As PyYAML and HfArgumentParser take it.
  for (const char* on : {"yes", "on", "Yes", "On", "YES", "ON"})
    if (value.kind == io::Tree::Kind::kString && value.text == on) return true;
  for (const char* off : {"no", "off", "No", "Off", "NO", "OFF"})
    if (value.kind == io::Tree::Kind::kString && value.text == off) return false;
  const io::Tree plain = value.kind == io::Tree::Kind::kString ? io::resolve_plain_scalar(value.text) : value;
  if (plain.kind != io::Tree::Kind::kBool) return {};
  return plain.boolean;
}

Draft::Draft(std::vector<Source> sources) : sources_(std::move(sources)) {}

const SourceKey* Draft::find(std::string_view pattern) const {
  for (const Source& source : sources_)
    if (const SourceKey* key = find(source.dialect, pattern)) return key;
  return nullptr;
}

const SourceKey* Draft::find(Dialect dialect, std::string_view pattern) const {
  for (const Source& source : sources_)
    for (const SourceKey& key : source.keys)
      if (source.dialect == dialect && key.pattern == pattern && !key.value.is_null() &&
          key.value.text != "auto")
        return &key;
  return nullptr;
}

bool Draft::has_dialect(Dialect dialect) const {
  return std::any_of(sources_.begin(), sources_.end(), [&](const Source& s) { return s.dialect == dialect; });
}

bool Draft::is_accounted(const SourceKey& key) const { return accounted_.contains({key.file, key.name}); }

KeyReport* Draft::report(const SourceKey& key, Fate fate, const std::string& setting, std::string note) {
  if (!accounted_.insert({key.file, key.name}).second) return nullptr;
  reports_.push_back({key, fate, setting, std::move(note)});
  return &reports_.back();
}

void Draft::harmless(const SourceKey& key, std::string note) {
  report(key, Fate::kHarmless, {}, std::move(note));
}

void Draft::no_equal(const SourceKey& key, std::string note, const std::string& setting) {
  report(key, Fate::kNoEqual, setting, std::move(note));
}

void Draft::joined(const SourceKey& key, const std::string& setting, std::string note) {
  const auto at = lines_.find(setting);
  if (report(key, Fate::kMapped, setting, std::move(note)) == nullptr || at == lines_.end()) return;
  at->second.keys.push_back(reports_.size() - 1);
  name_also(key, at->second.comment);
}

void Draft::wrong(const SourceKey& key, std::string_view expected, std::string hint) {
  if (!accounted_.insert({key.file, key.name}).second) return;
  errors_.push_back({ErrorCode::kInvalidArgument,
                     fmt::format("{} is {}, expected {}", key.name, key.value.describe(), expected),
                     key.place(), hint.empty() ? "correct it, or leave it out" : std::move(hint)});
}

const Line* Draft::line(const std::string& setting) const {
  const auto at = lines_.find(setting);
  return at == lines_.end() ? nullptr : &at->second;
}

void Draft::write(const SourceKey& key, const std::string& setting, const io::Tree& value,
                  const std::string& note, Fate fate) {
  const auto before = lines_.find(setting);
  if (before != lines_.end() && !before->second.is_default &&
      to_yaml_flow(before->second.value) != to_yaml_flow(value)) {
    accounted_.insert({key.file, key.name});
    errors_.push_back({ErrorCode::kInvalidArgument,
                       fmt::format("{} contradicts another key: {} is {} by {}", key.name, setting,
                                   before->second.value.describe(), before->second.comment),
                       key.place(), "keep one of them"});
    return;
  }
  if (report(key, fate, setting, note) == nullptr) return;
  Line& line = lines_[setting];
  const bool is_same = to_yaml_flow(key.value) == to_yaml_flow(value);
  if (line.is_default || line.keys.empty()) {
    std::string_view shown = key.name;
    line = {value, is_same ? std::string(shown) : fmt::format("{}: {}", shown, to_yaml_flow(key.value))};
    if (!note.empty()) line.comment += "; " + note;
  } else {
    name_also(key, line.comment);
  }
  line.keys.push_back(reports_.size() - 1);
}

void Draft::map(const SourceKey& key, const std::string& setting_path, const io::Tree& value,
                const std::string& note) {
  const settings::Setting* setting = settings::find_setting(setting_path);
  settings::RunConfig scratch;
  auto as_taken = taken(*setting, value, scratch);
  if (!as_taken) {
    const std::string& what = as_taken.error().what;
    const size_t expected = what.find(", expected ");
    const std::string_view tail = expected == std::string::npos
                                      ? std::string_view("another value")
                                      : std::string_view(what).substr(expected + 11);
    return wrong(key, tail, as_taken.error().hint);
  }
  if (!is_available(*setting, *as_taken, scratch)) {
    leave_out(setting_path);
    return no_equal(key, not_there(*setting, *as_taken) + (note.empty() ? "" : "; " + note), setting_path);
  }
  write(key, setting_path, *as_taken, note, Fate::kMapped);
}

bool Draft::can_take(const std::string& setting_path, const io::Tree& value) const {
  const settings::Setting* setting = settings::find_setting(setting_path);
  settings::RunConfig scratch;
  if (setting->field == nullptr) return false;
  const auto as_taken = taken(*setting, value, scratch);
  return as_taken && is_available(*setting, *as_taken, scratch);
}

std::optional<Draft::Choice> Draft::first_available(const std::string& setting_path,
                                                    std::string_view words) const {
  const settings::Setting* setting = settings::find_setting(setting_path);
  while (!words.empty()) {
    const size_t comma = std::min(words.find(','), words.size());
    std::string_view word = words.substr(0, comma);
    words.remove_prefix(std::min(comma + 1, words.size()));
    const bool is_equal = !word.starts_with('!');
    if (!is_equal) word.remove_prefix(1);
    settings::RunConfig scratch;
    auto value = taken(*setting, io::resolve_plain_scalar(std::string(word)), scratch);
    if (value && is_available(*setting, *value, scratch)) return Choice{*value, is_equal};
  }
  return {};
}

void Draft::map_words(const SourceKey& key, const std::string& setting, std::string_view words,
                      const std::string& note) {
  const auto choice = first_available(setting, words);
  if (!choice) {
    leave_out(setting);
    return no_equal(key, note.empty() ? "not available here" : note, setting);
  }
  if (choice->is_equal) return write(key, setting, choice->value, note, Fate::kMapped);
  write(key, setting, choice->value,
        fmt::format("not the same: {} stands for {}{}", to_yaml_flow(choice->value), to_yaml_flow(key.value),
                    note.empty() ? "" : "; " + note),
        Fate::kNoEqual);
}

void Draft::set(const std::string& setting, const io::Tree& value, const std::string& comment) {
  Line& line = lines_[setting];
  line.value = value;
  line.comment = comment;
  line.is_default = false;
}

void Draft::set_default(const std::string& setting, std::string_view words, const std::string& comment) {
  if (has(setting) || left_out_.contains(setting)) return;
  const auto choice = first_available(setting, words);
  if (!choice) return;
  lines_[setting] = {.value = choice->value,
                     .comment = choice->is_equal ? comment : "not the same: " + comment,
                     .is_default = true,
                     .is_other = !choice->is_equal};
}

void Draft::drop(const std::string& setting, const std::string& note) {
  for (const size_t i : lines_.at(setting).keys) {
    reports_[i].fate = Fate::kHarmless;
    reports_[i].note = note;
    reports_[i].setting.clear();
  }
  lines_.erase(setting);
}

void Draft::wait(Line& line, const std::string& for_what) {
  if (!line.is_waiting) line.comment += "; needs " + for_what;
  line.is_waiting = true;
}

void Draft::leave_the_best_model() {
  for (const char* path : {"training.load_best_model_at_end", "training.metric_for_best_model",
                           "training.greater_is_better", "training.early_stopping_patience"})
    if (const auto at = lines_.find(path); at != lines_.end())
      wait(at->second, "evaluations, and checkpoints at the same steps");
}

void Draft::settle() {
  settings::RunConfig config;
  for (const auto& [path, line] : lines_)
    (void)!settings::assign_setting(*settings::find_setting(path), line.value, config);
  std::vector<std::pair<std::string, std::string>> idle;
  for (const auto& [path, line] : lines_)
    if (const settings::Setting& setting = *settings::find_setting(path);
        !settings::has_effect(setting, config))
      idle.emplace_back(
          path, fmt::format("no effect with {} {}", setting.only_with.path,
                            settings::setting_text(*settings::find_setting(setting.only_with.path), config)));
  for (const auto& [path, note] : idle) drop(path, note);
  if (config.data.evaluates()) return;
  for (const char* path : {"training.eval_steps", "training.eval_strategy"})
    if (const auto at = lines_.find(path); at != lines_.end() && to_yaml_flow(at->second.value) != "\"no\"" &&
                                           to_yaml_flow(at->second.value) != "no") {
      wait(at->second, "data.eval");
      fill_in("data.eval", "held-out data, then the lines of evaluation below hold");
    }
}

}  // namespace plimsoll::importing
