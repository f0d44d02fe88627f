#include "settings/effect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

namespace plimsoll::settings {
namespace {

constexpr std::string_view kNotYet = "not available in this version";

/// A word as it is, which YAML quotes where it has a colon: cuda:1.
std::string_view unquoted(std::string_view text) {
  const bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

bool is_one_of(std::string_view word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// What the other setting says in this run: its default where it has no effect itself.
std::string other_text(const OnlyWith& needs, const RunConfig& config) {
  const Setting& other = *find_setting(needs.path);
  return setting_text(other, has_effect(other, config) ? config : RunConfig{});
}

/// What takes the setting's effect away: what it goes by, or what that one goes by in its turn.
const OnlyWith& cause(const Setting& setting, const RunConfig& config) {
  const OnlyWith& needs = setting.only_with;
  if (!needs.needs_effect) return needs;
  const Setting& other = *find_setting(needs.path);
  return has_effect(other, config) ? needs : cause(other, config);
}

bool is_default(const Setting& setting, const RunConfig& config) {
  return setting_text(setting, config) == setting_text(setting, RunConfig{});
}

/// "0", "null": a default that asks for nothing, so that there is nothing to tell where it has no effect.
bool is_off(const std::string& text) { return is_one_of(text, {"0", "null", "false", "none", "auto", "[]"}); }

Error refused(const Setting& setting, const RunConfig& config, const std::string& where) {
  const OnlyWith& needs = cause(setting, config);
  const auto named = std::ranges::find_if(needs.values, [](const std::string& v) { return v != "auto"; });
  std::string set = fmt::format("{}={}", needs.path, named == needs.values.end() ? "…" : *named);
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} is {}, which has no effect with {} {}", setting.path, setting_text(setting, config),
                      needs.path, other_text(needs, config)),
          where, fmt::format("leave it out, or set {}", set)};
}

/// "training.momentum, training.nesterov have no effect with training.optimizer adamw", a line for each
/// choice.
class IdleNotes {
 public:
  void add(const Setting& setting, const RunConfig& config) {
    const OnlyWith& needs = cause(setting, config);
    const std::string with = needs.path + " " + other_text(needs, config);
    const auto line =
        std::find_if(lines_.begin(), lines_.end(), [&](const auto& l) { return l.first == with; });
    if (line == lines_.end())
      lines_.push_back({with, {setting.path}});
    else
      line->second.push_back(setting.path);
  }
  void tell(std::vector<std::string>& notes) const {
    for (const auto& [with, names] : lines_)
      notes.push_back(fmt::format("{} {} no effect with {}", fmt::join(names, ", "),
                                  names.size() == 1 ? "has" : "have", with));
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> lines_;
};

std::string place_of(const GivenSettings& given, std::string_view path) {
  const auto found = given.find(path);
  return found == given.end() ? "" : found->second.where;
}

}  // namespace

bool has_effect(const Setting& setting, const RunConfig& config) {
  const OnlyWith& needs = setting.only_with;
  if (needs.path.empty()) return true;
  if (needs.needs_effect && !has_effect(*find_setting(needs.path), config)) return false;
  const std::string text = other_text(needs, config);
  if (needs.values.empty()) return text != "null";
  return is_one_of(text, needs.values) ||
         (needs.or_overrides && std::any_of(needs.values.begin(), needs.values.end(), [&](const auto& value) {
            const auto precision = find_word<Precision>(value);
            return precision && config.computes_in(*precision);
          }));
}

void set_back(const Setting& setting, RunConfig& config) {
  RunConfig defaults;
  const SettingField from = setting.field(defaults);
  std::visit([&](auto* to) { *to = *std::get<decltype(to)>(from); }, setting.field(config));
}

std::vector<Error> settle_idle(RunConfig& config, GivenSettings& given, Idle idle) {
  std::vector<Error> errors;
  IdleNotes notes;
  std::vector<const Setting*> passed;
  for (const Setting& setting : settings()) {
    const auto place = given.find(setting.path);
    if (place == given.end() || setting.field == nullptr || has_effect(setting, config)) continue;
    if (idle == Idle::kPassed) passed.push_back(&setting);
    const auto choice = given.find(cause(setting, config).path);
    const bool is_later = choice != given.end() && choice->second.document > place->second.document;
    if (is_default(setting, config)) {
      if (!is_off(setting_text(setting, config))) notes.add(setting, config);
    } else if (idle == Idle::kPassed || is_later || setting.only_with.is_noted) {
      notes.add(setting, config);
      set_back(setting, config);
    } else {
      errors.push_back(refused(setting, config, place->second.where));
    }
  }
  for (const Setting* setting : passed) given.erase(setting->path);
  if (idle == Idle::kRefused) notes.tell(config.notes);
  return errors;
}

std::vector<Error> unavailable(const RunConfig& config, const GivenSettings& given) {
  std::vector<Error> errors;
  const auto refuse = [&](std::string what, const std::string& where, std::string hint) {
    errors.push_back({ErrorCode::kInvalidArgument, std::move(what), where, std::move(hint)});
  };
  for (const Setting& setting : settings()) {
    const std::string where = place_of(given, setting.path);
    if (setting.field == nullptr) {
      const auto found = given.find(setting.path);
      if (found != given.end() && found->second.asks)
        refuse(fmt::format("{} is {}", setting.path, kNotYet), where, setting.instead);
    } else if (const std::string text = setting_text(setting, config);
               !setting.available.empty() && !is_one_of(unquoted(text), setting.available)) {
      const std::string has =
          fmt::format("{} takes {} today", setting.path, fmt::join(setting.available, ", "));
      refuse(fmt::format("{} is {}, which is {}", setting.path, text.substr(0, 60), kNotYet), where,
             setting.instead.empty() ? has : has + "; " + setting.instead);
    }
  }
  return errors;
}

}  // namespace plimsoll::settings
