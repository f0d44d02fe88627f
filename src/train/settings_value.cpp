// From YAML to a setting's field and back: one overload for each type of field.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "data/length_buckets.h"
#include "io/suggest.h"
#include "train/settings.h"

namespace plimsoll {
namespace {

using Kind = Tree::Kind;

Error wrong(const Setting& setting, const Tree& value) {
  Error error{ErrorCode::kInvalidArgument,
              fmt::format("{} is {}, expected {}", setting.path, value.describe(), setting_type(setting)),
              {},
              fmt::format("{}: {}", setting.path, setting.help)};
  if (!setting.choices.empty() && value.kind == Kind::kString)
    error.hint = fmt::format("the nearest is {}", nearest_name(value.text, setting.choices));
  return error;
}

bool in_range(const Setting& setting, double value) {
  return value <= setting.most && (setting.above_least ? value > setting.least : value >= setting.least);
}

bool is_number(const Tree& value) { return value.kind == Kind::kInteger || value.kind == Kind::kNumber; }

Status assign(const Setting& setting, const Tree& value, bool* field) {
  if (value.kind != Kind::kBool) return wrong(setting, value);
  *field = value.boolean;
  return Ok{};
}

Status assign(const Setting& setting, const Tree& value, int64_t* field) {
  // 1e3 is a number to YAML and a count to its writer.
  const bool whole = value.kind == Kind::kNumber && std::abs(value.number) <= 0x1p53 &&
                     std::trunc(value.number) == value.number;
  if ((value.kind != Kind::kInteger && !whole) || !in_range(setting, value.number))
    return wrong(setting, value);
  *field = whole ? static_cast<int64_t>(value.number) : value.integer;
  return Ok{};
}

Status assign(const Setting& setting, const Tree& value, double* field) {
  if (!is_number(value) || !in_range(setting, value.number)) return wrong(setting, value);
  *field = value.number;
  return Ok{};
}

template <typename T>
Status assign(const Setting& setting, const Tree& value, std::optional<T>* field) {
  if (value.is_null() || (value.kind == Kind::kString && value.text == setting.absent)) {
    field->reset();
    return Ok{};
  }
  T number = 0;
  PLIMSOLL_TRY(assign(setting, value, &number));
  *field = number;
  return Ok{};
}

bool allowed(const Setting& setting, const std::string& word) {
  return setting.choices.empty() ||
         std::find(setting.choices.begin(), setting.choices.end(), word) != setting.choices.end();
}

Status assign(const Setting& setting, const Tree& value, std::string* field) {
  if (value.is_null() && setting.choices.empty()) {
    field->clear();
    return Ok{};
  }
  if (!value.is_scalar() || value.is_null() || !allowed(setting, value.text)) return wrong(setting, value);
  // A number may name a folder; true, yes or on is a mistake for one.
  if (value.kind == Kind::kBool) return wrong(setting, value);
  if (value.text.find('\0') != std::string::npos) return wrong(setting, value);
  *field = value.text;
  return Ok{};
}

Status assign(const Setting& setting, const Tree& value, std::vector<std::string>* field) {
  std::vector<Tree> items = value.items;
  if (value.is_scalar() && !value.is_null()) items = {value};
  if (value.kind == Kind::kMap) return wrong(setting, value);
  std::vector<std::string> words;
  for (const Tree& item : items) {
    std::string word;
    if (item.is_null()) return wrong(setting, item);
    PLIMSOLL_TRY(assign(setting, item, &word));
    words.push_back(std::move(word));
  }
  *field = std::move(words);
  return Ok{};
}

Status assign(const Setting& setting, const Tree& value, std::vector<double>* field) {
  if (value.kind != Kind::kList && !value.is_null()) return wrong(setting, value);
  std::vector<double> numbers;
  for (const Tree& item : value.items) {
    double number = 0;
    PLIMSOLL_TRY(assign(setting, item, &number));
    numbers.push_back(number);
  }
  *field = std::move(numbers);
  return Ok{};
}

/// A path of the command line is cut at its dots, a pattern's own as well: nested maps are joined again.
Status read_overrides(const Setting& setting, const std::string& prefix, const Tree& map,
                      PrecisionOverrides& overrides) {
  for (const auto& [key, value] : map.members) {
    const std::string pattern = prefix + key;
    if (value.kind == Kind::kMap) {
      PLIMSOLL_TRY(read_overrides(setting, pattern + ".", value, overrides));
      continue;
    }
    std::string precision;
    auto status = assign(setting, value, &precision);
    if (!status) {
      Error error = std::move(status).error();
      error.what = fmt::format("{}: {} is {}, expected one of {}", setting.path, pattern.substr(0, 100),
                               value.describe(), fmt::join(setting.choices, ", "));
      return error;
    }
    overrides.emplace_back(pattern, std::move(precision));
  }
  return Ok{};
}

/// What is given later is tried before what was there, and replaces it where the pattern is the same.
Status assign(const Setting& setting, const Tree& value, PrecisionOverrides* field) {
  if (value.kind != Kind::kMap && !value.is_null()) return wrong(setting, value);
  PrecisionOverrides overrides;
  PLIMSOLL_TRY(read_overrides(setting, "", value, overrides));
  for (auto& before : *field) {
    if (value.is_null()) break;
    const bool again = std::any_of(overrides.begin(), overrides.end(),
                                   [&](const auto& o) { return o.first == before.first; });
    if (!again) overrides.push_back(std::move(before));
  }
  *field = std::move(overrides);
  return Ok{};
}

Status assign(const Setting& setting, const Tree& value, BucketSettings* field) {
  BucketSettings buckets;
  if (value.kind == Kind::kInteger) {
    if (value.integer < 1 || value.integer > kMostBucketLengths) return wrong(setting, value);
    buckets.count = value.integer;
  } else if (!value.is_null()) {
    const auto most = static_cast<size_t>(kMostBucketLengths);
    if (value.kind != Kind::kList || value.items.empty() || value.items.size() > most)
      return wrong(setting, value);
    for (const Tree& item : value.items) PLIMSOLL_TRY(assign(setting, item, &buckets.lengths.emplace_back()));
  }
  *field = std::move(buckets);
  return Ok{};
}

Status assign(const Setting& setting, const Tree& value, MemoryBudget* field) {
  *field = {};
  if (value.is_null() || (value.kind == Kind::kString && value.text == "auto")) return Ok{};
  if (!value.is_scalar() || value.kind == Kind::kBool) return wrong(setting, value);
  if (value.text.ends_with('%')) {
    const auto share = parse_bytes(std::string_view(value.text).substr(0, value.text.size() - 1));
    // Whole percents only: a share of a machine's memory is no finer thing.
    if (!share || share->count < 1 || share->count > 100) return wrong(setting, value);
    *field = {.kind = MemoryBudget::Kind::kShare, .share = static_cast<double>(share->count) / 100.0};
    return Ok{};
  }
  const auto bytes = parse_bytes(value.text);
  if (!bytes || bytes->count < 1) return wrong(setting, value);
  *field = {.kind = MemoryBudget::Kind::kBytes, .bytes = bytes->count};
  return Ok{};
}

Status assign(const Setting& setting, const Tree& value, RecomputeSettings* field) {
  if (value.is_scalar()) {
    *field = {};
    return value.is_null() ? Status(Ok{}) : assign(setting, value, &field->mode);
  }
  if (value.kind != Kind::kMap || value.members.size() != 1) return wrong(setting, value);
  const auto& [mode, argument] = value.members.front();
  RecomputeSettings result{.mode = mode};
  const bool is_count = (mode == "every" || mode == "segments") && argument.kind == Kind::kInteger &&
                        argument.integer >= 1 && argument.integer <= 4096;
  const bool is_layers = mode == "layers" && argument.kind == Kind::kList && !argument.items.empty() &&
                         std::all_of(argument.items.begin(), argument.items.end(),
                                     [](const Tree& t) { return t.is_scalar() && !t.is_null(); });
  if (!is_count && !is_layers) return wrong(setting, value);
  result.count = argument.integer;
  for (const Tree& layer : argument.items) result.layers.push_back(layer.text);
  *field = std::move(result);
  return Ok{};
}

Status assign(const Setting& setting, const Tree& value, Tree* field) {
  const bool is_word =
      value.kind == Kind::kString && !setting.choices.empty() && allowed(setting, value.text);
  if (value.kind != Kind::kMap && !value.is_null() && !is_word) return wrong(setting, value);
  if (value.is_null() && !setting.choices.empty())
    *field = Tree::of(setting.choices.front());
  else if (setting.choices.empty())
    field->merge(value);  // the overrides of a model gather over file and command line
  else
    *field = value;
  return Ok{};
}

std::string text_of(const Setting&, const bool* field) { return *field ? "true" : "false"; }
std::string text_of(const Setting&, const int64_t* field) { return std::to_string(*field); }
std::string text_of(const Setting&, const double* field) { return number_text(*field); }
std::string text_of(const Setting&, const std::string* field) {
  return field->empty() ? "null" : to_yaml_flow(Tree::of(*field));
}
template <typename T>
std::string text_of(const Setting& setting, const std::optional<T>* field) {
  return *field ? text_of(setting, &**field) : setting.absent;
}
std::string text_of(const Setting&, const std::vector<std::string>* field) {
  Tree list = Tree::list();
  for (const std::string& word : *field) list.items.push_back(Tree::of(word));
  return to_yaml_flow(list);
}
std::string text_of(const Setting&, const std::vector<double>* field) {
  std::string text;
  for (const double number : *field) text += (text.empty() ? "" : ", ") + number_text(number);
  return "[" + text + "]";
}
std::string text_of(const Setting&, const PrecisionOverrides* field) {
  Tree map = Tree::map();
  for (const auto& [pattern, precision] : *field) map.set(pattern, Tree::of(precision));
  return field->empty() ? "null" : to_yaml_flow(map);
}
std::string text_of(const Setting&, const BucketSettings* field) {
  if (!field->given()) return "null";
  if (field->count > 0) return std::to_string(field->count);
  return fmt::format("[{}]", fmt::join(field->lengths, ", "));
}
std::string text_of(const Setting&, const MemoryBudget* field) {
  if (field->kind == MemoryBudget::Kind::kAuto) return "auto";
  if (field->kind == MemoryBudget::Kind::kBytes) return std::to_string(field->bytes);
  return fmt::format("{:.0f}%", field->share * 100.0);
}
std::string text_of(const Setting& setting, const RecomputeSettings* field) {
  if (field->mode == "layers") return fmt::format("{{layers: {}}}", text_of(setting, &field->layers));
  if (field->mode == "every" || field->mode == "segments")
    return fmt::format("{{{}: {}}}", field->mode, field->count);
  return field->mode;
}
std::string text_of(const Setting&, const Tree* field) { return to_yaml_flow(*field); }

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string range_of(const Setting& setting) {
  return fmt::format("{} {} to {}", setting.above_least ? "above" : "from", number_text(setting.least),
                     number_text(setting.most));
}

struct TypeText {
  const Setting& setting;
  std::string operator()(bool*) const { return "true or false"; }
  std::string operator()(int64_t*) const { return "an integer " + range_of(setting); }
  std::string operator()(double*) const { return "a number " + range_of(setting); }
  std::string operator()(std::optional<bool>*) const { return "true, false, or " + setting.absent; }
  std::string operator()(std::optional<int64_t>*) const {
    return "an integer " + range_of(setting) + ", or " + setting.absent;
  }
  std::string operator()(std::optional<double>*) const {
    return "a number " + range_of(setting) + ", or " + setting.absent;
  }
  std::string operator()(std::string*) const {
    return setting.choices.empty() ? "text" : "one of " + joined(setting.choices);
  }
  std::string operator()(std::vector<std::string>*) const {
    return setting.choices.empty() ? "text or a list" : "a list of " + joined(setting.choices);
  }
  std::string operator()(std::vector<double>*) const { return "a list of numbers " + range_of(setting); }
  std::string operator()(PrecisionOverrides*) const {
    return "a map from patterns to " + joined(setting.choices);
  }
  std::string operator()(BucketSettings*) const {
    return fmt::format("how many (from 1 to {0}), a list of up to {0} integers {1}, or null",
                       kMostBucketLengths, range_of(setting));
  }
  std::string operator()(MemoryBudget*) const { return "auto, a size such as 6GiB, or a share such as 80%"; }
  std::string operator()(RecomputeSettings*) const {
    return joined(setting.choices) + ", {every: n}, {segments: k} or {layers: [patterns]}";
  }
  std::string operator()(Tree*) const {
    return setting.choices.empty() ? "a map" : joined(setting.choices) + " or a map";
  }
};

}  // namespace

std::string setting_type(const Setting& setting) {
  RunConfig run;
  return std::visit(TypeText{setting}, setting.field(run));
}

Status assign_setting(const Setting& setting, const Tree& value, RunConfig& config) {
  return std::visit([&](auto* field) { return assign(setting, value, field); }, setting.field(config));
}

std::string setting_text(const Setting& setting, const RunConfig& config) {
  // Accessors hand out mutable fields; nothing is written here.
  return std::visit([&](auto* field) { return text_of(setting, field); },
                    setting.field(const_cast<RunConfig&>(config)));
}

}  // namespace plimsoll
