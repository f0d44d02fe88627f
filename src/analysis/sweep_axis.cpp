#include <fmt/format.h>

#include <algorithm>

#include "analysis/sweep.h"
#include "io/suggest.h"
#include "models/presets.h"
#include "settings/settings.h"

namespace plimsoll::analysis {
namespace {

/// At commas that no bracket, brace or quote holds.
std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values = {""};
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0)
      quote = c == quote ? char{0} : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    if (c == ',' && depth == 0 && quote == 0)
      values.emplace_back();
    else if (c != ' ' || !values.back().empty())
      values.back() += c;
  }
  return values;
}

std::vector<std::string> divisors(int64_t number) {
  std::vector<std::string> list;
  for (int64_t n = 1; n <= number; ++n)
    if (number % n == 0) list.push_back(std::to_string(n));
  return list;
}

/// What "all" stands for; nothing where there is no end to it.
std::vector<std::string> all_values(const settings::Setting& setting, const settings::RunConfig& config) {
  if (setting.path == "training.micro_batch_size") return divisors(config.training.global_batch_size);
  if (setting.path == "model.preset") return models::preset_names();
  if (setting.path == "training.global_batch_size") return batches_at_once().values;
  return setting.available.empty() ? setting.choices : setting.available;
}

bool is_integer(const settings::Setting& setting) {
  settings::RunConfig config;
  const settings::SettingField field = setting.field(config);
  return std::holds_alternative<int64_t*>(field) || std::holds_alternative<std::optional<int64_t>*>(field);
}

Error wrong(std::string what, const std::string& text, std::string hint) {
  return Error{ErrorCode::kInvalidArgument, std::move(what), "--sweep " + text, std::move(hint)};
}

}  // namespace

SweepAxis batches_at_once() {
  constexpr int64_t kMost = 1 << 14;
  const std::string name = "training.global_batch_size";
  SweepAxis axis{.path = name, .setting = name, .at_once = true};
  for (int64_t n = 1; n <= kMost; n *= 2) axis.values.push_back(std::to_string(n));
  return axis;
}

Result<SweepAxis> parse_sweep(const std::string& text, const settings::RunConfig& config) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return wrong("--sweep takes a setting and its values", text,
                 "--sweep data.sequence_length=512,1024,2048");
  SweepAxis axis{text.substr(0, equals), split_values(std::string_view(text).substr(equals + 1))};
  PLIMSOLL_ASSIGN(const std::vector<std::string> paths,
                  settings::settings_of_override(axis.path + "=" + axis.values.front()));
  const bool is_own_name = paths.empty() || std::ranges::find(paths, axis.path) != paths.end();
  axis.setting = is_own_name ? axis.path : paths.front();
  const settings::Setting* setting = settings::find_setting(axis.setting);
  if (axis.values == std::vector<std::string>{"max"}) {
    if (setting == nullptr || setting->field == nullptr ||
        !(is_integer(*setting) || axis.setting == "model.preset"))
      return wrong("'max' needs a setting that is a whole number, or model.preset", text,
                   "give values: --sweep " + axis.path + "=V1,V2");
    axis.values.clear();
    axis.finds_largest = true;
  } else if (axis.values == std::vector<std::string>{"all"}) {
    axis.values = setting == nullptr ? std::vector<std::string>{} : all_values(*setting, config);
    if (axis.values.empty())
      return wrong("there is no list of all values of " + axis.path, text,
                   "give values: --sweep " + axis.path + "=V1,V2");
    axis.at_once = axis.setting == batches_at_once().setting;
  }
  for (const std::string& value : axis.values)
    if (value == "max" || value == "all")
      return wrong("'" + value + "' must be the only value", text, "--sweep " + axis.path + "=" + value);
    else if (value.empty())
      return wrong("a value is missing", text, "separate values by commas: A,B,C");
  return axis;
}

}  // namespace plimsoll::analysis
