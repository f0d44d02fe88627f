// Parses a YAML value into a setting's field: one overload for each type of field.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "base/units.h"
#include "datasets/length_buckets.h"
#include "io/scalar.h"
#include "io/suggest.h"
#include "settings/param_groups.h"
#include "settings/settings.h"
#include "settings/wrong.h"

namespace plimsoll::settings {
namespace {

/// "3e-4": a text, where the number was meant.
bool means_itself_unquoted(const Setting& setting, const io::Tree& value) {
  if (value.kind != io::Tree::Kind::kString) return false;
  const io::Tree plain = io::resolve_plain_scalar(value.text);
  RunConfig scratch;
  return plain.kind != io::Tree::Kind::kString && !plain.is_null() && assign_setting(setting, plain, scratch);
}

Error wrong(const Setting& setting, const io::Tree& value) {
  Error error{ErrorCode::kInvalidArgument,
              fmt::format("{} is {}, expected {}", setting.path, value.describe(), setting_type(setting)),
              {},
              fmt::format("{}: {}", setting.path, setting.help)};
  if (!setting.choices.empty() && value.kind == io::Tree::Kind::kString)
    error.hint = io::nearest_hint(value.text, setting.choices);
  if (means_itself_unquoted(setting, value))
    error.hint = fmt::format("write it without quotes: {}: {}", setting.path, value.text);
  return error;
}

bool in_range(const Setting& setting, double value) {
  return value <= setting.most && (setting.above_least ? value > setting.least : value >= setting.least);
}

bool is_number(const io::Tree& value) {
  return value.kind == io::Tree::Kind::kInteger || value.kind == io::Tree::Kind::kNumber;
}

Status assign(const Setting& setting, const io::Tree& value, bool* field) {
  if (value.kind != io::Tree::Kind::kBool) return wrong(setting, value);
  *field = value.boolean;
  return Ok{};
}

Status assign(const Setting& setting, const io::Tree& value, int64_t* field) {
  if (setting.absent == "auto" && value.kind == io::Tree::Kind::kString && value.text == "auto") {
    *field = 0;
    return Ok{};
  }
  // 1e3 is a number to YAML and a count to its writer.
  const bool whole = value.kind == io::Tree::Kind::kNumber && std::abs(value.number) <= 0x1p53 &&
                     std::trunc(value.number) == value.number;
  if ((value.kind != io::Tree::Kind::kInteger && !whole) || !in_range(setting, value.number))
    return wrong(setting, value);
  *field = whole ? static_cast<int64_t>(value.number) : value.integer;
  return Ok{};
}

Status assign(const Setting& setting, const io::Tree& value, double* field) {
  if (!is_number(value) || !in_range(setting, value.number)) return wrong(setting, value);
  *field = value.number;
  return Ok{};
}

Status assign(const Setting& setting, const io::Tree& value, Bytes* field) {
  const auto bytes = value.is_scalar() && value.kind != io::Tree::Kind::kBool ? parse_bytes(value.text)
                                                                              : Result<Bytes>(Error{});
  if (!bytes) return wrong(setting, value);
  *field = *bytes;
  return Ok{};
}

template <typename T>
Status assign(const Setting& setting, const io::Tree& value, std::optional<T>* field) {
  if (value.is_null() || (value.kind == io::Tree::Kind::kString && value.text == setting.absent)) {
    field->reset();
    return Ok{};
  }
  T number{};
  PLIMSOLL_TRY(assign(setting, value, &number));
  *field = number;
  return Ok{};
}

bool allowed(const Setting& setting, const std::string& word) {
  return setting.choices.empty() ||
         std::find(setting.choices.begin(), setting.choices.end(), word) != setting.choices.end();
}

Status assign(const Setting& setting, const io::Tree& value, std::string* field) {
  if (value.is_null() && setting.choices.empty()) {
    field->clear();
    return Ok{};
  }
  if (!value.is_scalar() || value.is_null() || !allowed(setting, value.text)) return wrong(setting, value);
  // A number may name a folder; true, yes or on is a mistake for one, but where it is among the words.
  if (value.kind == io::Tree::Kind::kBool && setting.choices.empty()) return wrong(setting, value);
  if (value.text.find('\0') != std::string::npos) return wrong(setting, value);
  *field = value.text;
  return Ok{};
}

Status assign(const Setting& setting, const io::Tree& value, Choice* field) {
  std::string word;
  PLIMSOLL_TRY(assign(setting, value, &word));
  const auto place = std::find(setting.choices.begin(), setting.choices.end(), word);
  field->index = static_cast<uint8_t>(place - setting.choices.begin());
  return Ok{};
}

Status assign(const Setting& setting, const io::Tree& value, std::vector<std::string>* field) {
  std::vector<io::Tree> items = value.items;
  if (value.is_scalar() && !value.is_null()) items = {value};
  if (value.kind == io::Tree::Kind::kMap) return wrong(setting, value);
  std::vector<std::string> words;
  for (const io::Tree& item : items) {
    std::string word;
    if (item.is_null()) return wrong(setting, item);
    PLIMSOLL_TRY(assign(setting, item, &word));
    words.push_back(std::move(word));
  }
  *field = std::move(words);
  return Ok{};
}

/// A plain string is a pattern, but for PEFT's word for all of them; a list has names.
Status assign(const Setting& setting, const io::Tree& value, models::ModuleNames* field) {
  models::ModuleNames result;
  PLIMSOLL_TRY(assign(setting, value, &result.names));
  result.is_pattern = value.is_scalar() && !value.is_null();
  if (std::any_of(result.names.begin(), result.names.end(), [](const auto& name) { return name.empty(); }))
    return wrong(setting, value);
  *field = std::move(result);
  return Ok{};
}

Status assign(const Setting& setting, const io::Tree& value, std::vector<double>* field) {
  if (value.kind != io::Tree::Kind::kList && !value.is_null()) return wrong(setting, value);
  std::vector<double> numbers;
  for (const io::Tree& item : value.items) PLIMSOLL_TRY(assign(setting, item, &numbers.emplace_back()));
  *field = std::move(numbers);
  return Ok{};
}

/// A null leaves its number as it is.
Status assign(const Setting& setting, const io::Tree& value, std::array<double, 2>* field) {
  if (value.kind != io::Tree::Kind::kList || value.items.size() != field->size())
    return wrong(setting, value);
  std::array<double, 2> numbers = *field;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!value.items[i].is_null()) PLIMSOLL_TRY(assign(setting, value.items[i], &numbers[i]));
  *field = numbers;
  return Ok{};
}

/// What stands in an event beside figures of its own, and in training.metric_for_best_model.
bool is_set_name(std::string_view name) {
  return !name.empty() && name.size() <= 60 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
  });
}

Status assign(const Setting& setting, const io::Tree& value, EvalFiles* field) {
  EvalFiles result;
  if (value.kind != io::Tree::Kind::kMap) {
    PLIMSOLL_TRY(assign(setting, value, &result.files));
    *field = std::move(result);
    return Ok{};
  }
  for (const auto& [name, entry] : value.members) {
    std::vector<std::string> files;
    auto read = assign(setting, entry, &files);
    if (!is_set_name(name) || !read || files.empty())
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{}: '{}' is no set of evaluation data", setting.path, name.substr(0, 60)),
          {},
          "write a name of letters, digits, _ and -, and its files: {news: news.jsonl, code: [a.txt]}"};
    for (std::string& file : files) {
      result.files.push_back(std::move(file));
      result.names.push_back(name);
    }
  }
  *field = std::move(result);
  return Ok{};
}

/// A path of the command line is cut at its dots, a pattern's own as well: nested maps are joined again.
Status read_overrides(const Setting& setting, const std::string& prefix, const io::Tree& map,
                      PrecisionOverrides& overrides) {
  for (const auto& [key, value] : map.members) {
    const std::string pattern = prefix + key;
    if (value.kind == io::Tree::Kind::kMap) {
      PLIMSOLL_TRY(read_overrides(setting, pattern + ".", value, overrides));
      continue;
    }
    OneOf<Precision> precision = Precision::kFp32;
    auto status = assign(setting, value, static_cast<Choice*>(&precision));
    if (!status) {
      Error error = std::move(status).error();
      error.what = fmt::format("{}: {} is {}, expected one of {}", setting.path, pattern.substr(0, 100),
                               value.describe(), fmt::join(setting.choices, ", "));
      return error;
    }
    overrides.emplace_back(pattern, precision);
  }
  return Ok{};
}

/// What is given later is tried before what was there, and replaces it where the pattern is the same.
Status assign(const Setting& setting, const io::Tree& value, PrecisionOverrides* field) {
  if (value.kind != io::Tree::Kind::kMap && !value.is_null()) return wrong(setting, value);
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

Status assign(const Setting&, const io::Tree& value, ParamGroups* field) {
  PLIMSOLL_ASSIGN(*field, parse_param_groups(value));
  return Ok{};
}

Status assign(const Setting& setting, const io::Tree& value, BucketSettings* field) {
  BucketSettings buckets;
  if (value.kind == io::Tree::Kind::kInteger) {
    if (value.integer < 1 || value.integer > datasets::kMostBucketLengths) return wrong(setting, value);
    buckets.count = value.integer;
  } else if (!value.is_null()) {
    const auto most = static_cast<size_t>(datasets::kMostBucketLengths);
    if (value.kind != io::Tree::Kind::kList || value.items.empty() || value.items.size() > most)
      return wrong(setting, value);
    for (const io::Tree& item : value.items)
      PLIMSOLL_TRY(assign(setting, item, &buckets.lengths.emplace_back()));
  }
  *field = std::move(buckets);
  return Ok{};
}

/// A name, or a map from a name to a map of parameters or null.
bool is_augmentation(const io::Tree& entry) {
  if (entry.kind == io::Tree::Kind::kString) return true;
  return entry.kind == io::Tree::Kind::kMap && entry.members.size() == 1 &&
         (entry.members[0].second.kind == io::Tree::Kind::kMap || entry.members[0].second.is_null());
}

Status assign(const Setting& setting, const io::Tree& value, AugmentSettings* field) {
  const bool is_list = value.kind == io::Tree::Kind::kList;
  const bool reads = value.is_null() || is_augmentation(value) ||
                     (is_list && std::all_of(value.items.begin(), value.items.end(), is_augmentation));
  if (!reads) return wrong(setting, value);
  field->entries = is_list || value.is_null() ? value : io::Tree::list({value});
  if (field->entries.items.empty()) field->entries = {};
  return Ok{};
}

Status assign(const Setting& setting, const io::Tree& value, MemoryBudget* field) {
  *field = {};
  if (value.is_null() || (value.kind == io::Tree::Kind::kString && value.text == "auto")) return Ok{};
  if (!value.is_scalar() || value.kind == io::Tree::Kind::kBool) return wrong(setting, value);
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

Status assign(const Setting& setting, const io::Tree& value, Bandwidth* field) {
  *field = {};
  if (value.is_null()) return Ok{};
  std::string_view text = value.text;
  if (text.ends_with("/s")) text.remove_suffix(2);
  const auto bytes = parse_bytes(text);
  if (!value.is_scalar() || value.kind == io::Tree::Kind::kBool || !bytes || bytes->count < 1)
    return wrong(setting, value);
  field->bytes_per_second = static_cast<double>(bytes->count);
  return Ok{};
}

Status assign(const Setting& setting, const io::Tree& value, Latency* field) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const std::string_view text = value.is_scalar() ? std::string_view(value.text) : std::string_view();
  for (const auto& [unit, seconds] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = number_of<double>(text.substr(0, text.size() - unit.size()));
    if (!number || !(*number >= 0 && *number * seconds <= 1)) break;
    field->seconds = std::round(*number * seconds * 1e12) / 1e12;  // as its text reads back
    return Ok{};
  }
  return wrong(setting, value);
}

Status assign(const Setting& setting, const io::Tree& value, RecomputeSettings* field) {
  if (value.is_scalar()) {
    *field = {};
    std::string text(word(field->mode));
    if (!value.is_null()) PLIMSOLL_TRY(assign(setting, value, &text));
    field->mode = find_word<RecomputeMode>(text).value_or(RecomputeMode::kAuto);
    return Ok{};
  }
  if (value.kind != io::Tree::Kind::kMap || value.members.size() != 1) return wrong(setting, value);
  const auto& [name, argument] = value.members.front();
  const RecomputeMode mode = find_word<RecomputeMode>(name).value_or(RecomputeMode::kAuto);
  RecomputeSettings result{.mode = mode};
  const bool counts = mode == RecomputeMode::kEvery || mode == RecomputeMode::kSegments;
  const bool is_count = counts && argument.kind == io::Tree::Kind::kInteger && argument.integer >= 1 &&
                        argument.integer <= 4096;
  if (mode == RecomputeMode::kSegments && argument.is_null()) {
    *field = std::move(result);
    return Ok{};
  }
  const bool is_layers = mode == RecomputeMode::kLayers && argument.kind == io::Tree::Kind::kList &&
                         !argument.items.empty() &&
                         std::all_of(argument.items.begin(), argument.items.end(),
                                     [](const io::Tree& t) { return t.is_scalar() && !t.is_null(); });
  if (counts && !is_count)
    return wrong_setting(
        fmt::format("{}: {} is {}, expected a count from 1", setting.path, name, argument.describe()),
        "it can be no more than the model has blocks");
  if (mode == RecomputeMode::kLayers && !is_layers)
    return wrong_setting(fmt::format("{}: layers names none", setting.path),
                         "name some as the plan prints them, such as [layers.0, \"layers.*.mlp\"]");
  if (!is_count && !is_layers) return wrong(setting, value);
  result.count = argument.integer;
  for (const io::Tree& layer : argument.items) result.layers.push_back(layer.text);
  *field = std::move(result);
  return Ok{};
}

Status assign(const Setting& setting, const io::Tree& value, io::Tree* field) {
  const bool is_word =
      value.kind == io::Tree::Kind::kString && !setting.choices.empty() && allowed(setting, value.text);
  if (value.kind != io::Tree::Kind::kMap && !value.is_null() && !is_word) return wrong(setting, value);
  if (value.is_null() && !setting.choices.empty())
    *field = io::Tree::of(setting.choices.front());
  else if (setting.choices.empty())
    field->merge(value);  // the overrides of a model gather over file and command line
  else
    *field = value;
  return Ok{};
}

}  // namespace

Status assign_setting(const Setting& setting, const io::Tree& value, RunConfig& config) {
  if (setting.field == nullptr) return Ok{};
  return std::visit([&](auto* field) { return assign(setting, value, field); }, setting.field(config));
}

}  // namespace plimsoll::settings
