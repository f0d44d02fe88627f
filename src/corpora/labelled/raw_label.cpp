#include "corpora/labelled/raw_label.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "corpora/json_members.h"
#include "tokenizers/unicode.h"

namespace plimsoll::corpora {
namespace {

constexpr std::string_view kExpected = "a number, a name or a list of numbers";
constexpr size_t kMostShown = 40;

bool is_number(std::string_view json) {
  return !json.empty() && (json[0] == '-' || (json[0] >= '0' && json[0] <= '9'));
}

std::string shown(std::string_view json) {
  return json.size() <= kMostShown ? std::string(json) : std::string(json.substr(0, kMostShown)) + "…";
}

std::optional<std::string> parse_name(std::string_view json, RawLabel& label) {
  label.kind = RawLabelKind::kName;
  std::string name;
  append_unescaped(json, name);
  tokenizers::append_repaired(name, label.name);
  if (label.name.empty()) return "label is an empty name";
  if (label.name.size() > kMaxLabelNameBytes)
    return fmt::format("label is a text of {} bytes, expected a name of at most {}", label.name.size(),
                       kMaxLabelNameBytes);
  return std::nullopt;
}

std::optional<std::string> parse_list(std::string_view json, RawLabel& label) {
  label.kind = RawLabelKind::kList;
  ListItems items(json);
  for (std::string_view item; items.next(item);) {
    const auto value = parse_finite(item);
    if (!value) return fmt::format("label holds {}, expected a list of numbers", shown(item));
    label.values.push_back(*value);
  }
  return label.values.empty() ? std::optional<std::string>("label is an empty list") : std::nullopt;
}

}  // namespace

std::optional<float> parse_finite(std::string_view json) {
  double value = 0;
  if (!is_number(json)) return std::nullopt;
  const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), value);
  const auto single = static_cast<float>(value);
  // What is too small for a double is too small for a float.
  if (error == std::errc::result_out_of_range)
    return json.find("e-") != json.npos || json.find("E-") != json.npos ? std::optional(0.0F) : std::nullopt;
  if (error != std::errc() || end != json.data() + json.size() || !std::isfinite(single)) return std::nullopt;
  return single;
}

std::optional<std::string> parse_raw_label(std::string_view json, RawLabel& label) {
  label.kind = RawLabelKind::kAbsent;
  label.values.clear();
  label.name.clear();
  if (json.empty()) return std::nullopt;
  if (is_list(json)) return parse_list(json, label);
  if (is_string(json)) return parse_name(json, label);
  const auto value = parse_finite(json);
  if (!value)
    return fmt::format("label is {}, expected {}", is_object(json) ? "an object" : shown(json), kExpected);
  const bool integer = json.find_first_of(".eE") == json.npos;
  label.kind = integer ? RawLabelKind::kInteger : RawLabelKind::kNumber;
  label.values.push_back(*value);
  return std::nullopt;
}

}  // namespace plimsoll::corpora
