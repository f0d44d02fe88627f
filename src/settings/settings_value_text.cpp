// A setting's field as YAML, and what may stand there, for people: one overload for each type of field.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "datasets/length_buckets.h"
#include "settings/param_groups.h"
#include "settings/settings.h"

namespace plimsoll::settings {
namespace {

std::string text_of(const Setting&, const bool* field) { return *field ? "true" : "false"; }
std::string text_of(const Setting&, const int64_t* field) { return std::to_string(*field); }
std::string text_of(const Setting&, const double* field) { return io::number_text(*field); }
bool is_bool(std::string_view word) { return word == "true" || word == "false"; }
std::string text_of(const Setting& setting, const std::string* field) {
  if (!setting.choices.empty() && is_bool(*field)) return *field;
  return field->empty() ? "null" : io::to_yaml_flow(io::Tree::of(*field));
}
std::string text_of(const Setting& setting, const Choice* field) {
  const std::string& word = setting.choices[field->index];
  return is_bool(word) ? word : io::to_yaml_flow(io::Tree::of(word));
}
/// In the unit, binary or decimal, that says it exactly in the smallest number.
std::string text_of(const Setting&, const Bytes* field) {
  constexpr const char* kBinary[] = {"", "KiB", "MiB", "GiB", "TiB"};
  constexpr const char* kDecimal[] = {"", "KB", "MB", "GB", "TB"};
  const auto in_units = [&](int64_t base) {
    std::pair<int64_t, size_t> text{field->count, 0};
    for (; text.first != 0 && text.first % base == 0 && text.second + 1 < std::size(kBinary); ++text.second)
      text.first /= base;
    return text;
  };
  const auto binary = in_units(1024), decimal = in_units(1000);
  return decimal.first < binary.first ? fmt::format("{}{}", decimal.first, kDecimal[decimal.second])
                                      : fmt::format("{}{}", binary.first, kBinary[binary.second]);
}
template <typename T>
std::string text_of(const Setting& setting, const std::optional<T>* field) {
  return *field ? text_of(setting, &**field) : setting.absent;
}
std::string text_of(const Setting&, const std::vector<std::string>* field) {
  io::Tree list = io::Tree::list();
  for (const std::string& word : *field) list.items.push_back(io::Tree::of(word));
  return io::to_yaml_flow(list);
}
std::string text_of(const Setting& setting, const models::ModuleNames* field) {
  if (!field->given()) return "null";
  return field->is_pattern ? io::to_yaml_flow(io::Tree::of(field->names.front()))
                           : text_of(setting, &field->names);
}
std::string text_of(const Setting& setting, const EvalFiles* field) {
  if (field->names.empty()) return text_of(setting, &field->files);
  io::Tree map = io::Tree::map();
  for (const EvalFiles::Set& set : field->sets()) {
    io::Tree list = io::Tree::list();
    for (const std::string& file : set.files) list.items.push_back(io::Tree::of(file));
    map.set(set.name, std::move(list));
  }
  return io::to_yaml_flow(map);
}
std::string numbers_text(std::span<const double> numbers) {
  std::string text;
  for (const double number : numbers) text += (text.empty() ? "" : ", ") + io::number_text(number);
  return "[" + text + "]";
}
std::string text_of(const Setting&, const std::vector<double>* field) { return numbers_text(*field); }
std::string text_of(const Setting&, const std::array<double, 2>* field) { return numbers_text(*field); }
std::string text_of(const Setting&, const PrecisionOverrides* field) {
  io::Tree map = io::Tree::map();
  for (const auto& [pattern, precision] : *field)
    map.set(pattern, io::Tree::of(std::string(word(precision))));
  return field->empty() ? "null" : io::to_yaml_flow(map);
}
std::string text_of(const Setting&, const ParamGroups* field) { return param_groups_text(*field); }
std::string text_of(const Setting&, const BucketSettings* field) {
  if (!field->given()) return "null";
  if (field->count > 0) return std::to_string(field->count);
  return fmt::format("[{}]", fmt::join(field->lengths, ", "));
}
std::string text_of(const Setting&, const AugmentSettings* field) { return io::to_yaml_flow(field->entries); }
std::string text_of(const Setting&, const MemoryBudget* field) {
  if (field->kind == MemoryBudget::Kind::kAuto) return "auto";
  if (field->kind == MemoryBudget::Kind::kBytes) return std::to_string(field->bytes);
  return fmt::format("{:.0f}%", field->share * 100.0);
}
std::string text_of(const Setting&, const Bandwidth* field) {
  return field->bytes_per_second == 0 ? "null" : fmt::format("{:.0f}B/s", field->bytes_per_second);
}
std::string text_of(const Setting&, const Latency* field) {
  return io::number_text(std::round(field->seconds * 1e12) / 1e6) + "us";
}
std::string text_of(const Setting& setting, const RecomputeSettings* field) {
  if (field->mode == RecomputeMode::kLayers)
    return fmt::format("{{layers: {}}}", text_of(setting, &field->layers));
  if (field->mode == RecomputeMode::kSegments && field->count == 0) return "segments";
  if (field->mode == RecomputeMode::kEvery || field->mode == RecomputeMode::kSegments)
    return fmt::format("{{{}: {}}}", word(field->mode), field->count);
  return std::string(word(field->mode));
}
std::string text_of(const Setting&, const io::Tree* field) { return io::to_yaml_flow(*field); }

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

/// The words that a setting takes, those that this version has first.
std::string words_of(const Setting& setting) {
  if (setting.available.empty()) return joined(setting.choices);
  std::vector<std::string> planned;
  for (const std::string& word : setting.choices)
    if (std::find(setting.available.begin(), setting.available.end(), word) == setting.available.end())
      planned.push_back(word);
  return joined(setting.available) + (planned.empty() ? "" : "; not available yet: " + joined(planned));
}

std::string range_of(const Setting& setting) {
  return fmt::format("{} {} to {}", setting.above_least ? "above" : "from", io::number_text(setting.least),
                     io::number_text(setting.most));
}

struct TypeText {
  const Setting& setting;
  std::string operator()(bool*) const { return "true or false"; }
  std::string operator()(int64_t*) const {
    return "an integer " + range_of(setting) + (setting.absent == "auto" ? ", or auto" : "");
  }
  std::string operator()(double*) const { return "a number " + range_of(setting); }
  std::string operator()(std::optional<bool>*) const { return "true, false, or " + setting.absent; }
  std::string operator()(std::optional<int64_t>*) const {
    return "an integer " + range_of(setting) + ", or " + setting.absent;
  }
  std::string operator()(std::optional<double>*) const {
    return "a number " + range_of(setting) + ", or " + setting.absent;
  }
  std::string operator()(std::string*) const {
    if (setting.choices.empty()) return setting.available.empty() ? "text" : words_of(setting);
    return "one of " + words_of(setting);
  }
  std::string operator()(Choice*) const { return "one of " + words_of(setting); }
  std::string operator()(std::vector<std::string>*) const {
    return setting.choices.empty() ? "text or a list" : "a list of " + joined(setting.choices);
  }
  std::string operator()(models::ModuleNames*) const { return "a list of names, a pattern, or null"; }
  std::string operator()(EvalFiles*) const {
    return "text, a list, or either by a set's name: {news: a.jsonl}";
  }
  std::string operator()(std::vector<double>*) const { return "a list of numbers " + range_of(setting); }
  std::string operator()(std::array<double, 2>*) const { return "a list of 2 numbers " + range_of(setting); }
  std::string operator()(PrecisionOverrides*) const {
    return "a map from patterns to " + joined(setting.choices);
  }
  std::string operator()(ParamGroups*) const {
    return "a list of {params: [patterns], learning_rate, weight_decay, betas: [b1, b2]}, or null";
  }
  std::string operator()(BucketSettings*) const {
    return fmt::format("how many (from 1 to {0}), a list of up to {0} integers {1}, or null",
                       datasets::kMostBucketLengths, range_of(setting));
  }
  std::string operator()(AugmentSettings*) const { return "a list of names or {name: parameters}, or null"; }
  std::string operator()(MemoryBudget*) const { return "auto, a size such as 6GiB, or a share such as 80%"; }
  std::string operator()(Bandwidth*) const { return "bytes per second such as 12GB/s, or null"; }
  std::string operator()(Latency*) const { return "a time such as 5us, at most 1s"; }
  std::string operator()(std::optional<Bytes>*) const { return "a size such as 10GiB, or " + setting.absent; }
  std::string operator()(RecomputeSettings*) const {
    return words_of(setting) + ", {every: n}, {segments: k} or {layers: [patterns]}";
  }
  std::string operator()(io::Tree*) const {
    return setting.choices.empty()
               ? "a map"
               : words_of(setting) + (setting.available.empty() ? " or" : "; not available yet:") + " a map";
  }
};

}  // namespace

std::string setting_type(const Setting& setting) {
  if (setting.field == nullptr) return "nothing yet";
  RunConfig run;
  return std::visit(TypeText{setting}, setting.field(run));
}

std::string setting_text(const Setting& setting, const RunConfig& config) {
  if (setting.field == nullptr) return setting.absent;
  // Accessors hand out mutable fields; nothing is written here.
  return std::visit([&](auto* field) { return text_of(setting, field); },
                    setting.field(const_cast<RunConfig&>(config)));
}

}  // namespace plimsoll::settings
