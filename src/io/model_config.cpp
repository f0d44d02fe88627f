// Typed access to a config.json. The messages are made in one place so that every field's error reads alike.
#include "io/model_config.h"

#include <fmt/format.h>

#include <cmath>

#include "io/file.h"
#include "io/json.h"

namespace plimsoll::io {
namespace {

/// Room for the names of kMaxLabels labels of 200 bytes, both ways.
constexpr TreeLimits kLimits = {.max_bytes = int64_t{32} << 20, .max_nodes = 500'000};

std::string range_text(const IntegerRange& range) {
  return range.most == std::numeric_limits<int64_t>::max()
             ? fmt::format("an integer of at least {}", range.least)
             : fmt::format("an integer from {} to {}", range.least, range.most);
}

std::string range_text(const NumberRange& range) {
  return range.most == std::numeric_limits<double>::max()
             ? fmt::format("a number of at least {}", range.least)
             : fmt::format("a number from {} to {}", range.least, range.most);
}

bool same_value(const Tree& a, const Tree& b) {
  const bool numbers = (a.kind == Tree::Kind::kInteger || a.kind == Tree::Kind::kNumber) &&
                       (b.kind == Tree::Kind::kInteger || b.kind == Tree::Kind::kNumber);
  if (numbers) return a.number == b.number;
  if (a.kind != b.kind) return false;
  if (a.kind == Tree::Kind::kBool) return a.boolean == b.boolean;
  return a.is_scalar() ? a.text == b.text : to_json(a) == to_json(b);
}

}  // namespace

const Tree* ConfigJson::get(std::string_view field) const {
  read_.emplace(field);
  const Tree* value = fields_.find(field);
  return value && !value->is_null() ? value : nullptr;
}

bool ConfigJson::has(std::string_view field) const { return get(field) != nullptr; }

Error ConfigJson::error(std::string_view field, std::string_view expected, std::string hint) const {
  const Tree* value = get(field);
  const std::string what = value ? fmt::format("{} is {}, expected {}", field, value->describe(), expected)
                                 : fmt::format("{} is missing, expected {}", field, expected);
  if (hint.empty())
    hint = fmt::format("correct {}, or set model.overrides.{}{} in the run file", field, within_, field);
  return {ErrorCode::kBadData, what, source_, std::move(hint)};
}

Result<int64_t> ConfigJson::integer(std::string_view field, IntegerRange range) const {
  const Tree* value = get(field);
  if (!value || value->kind != Tree::Kind::kInteger || value->integer < range.least ||
      value->integer > range.most)
    return error(field, range_text(range));
  return value->integer;
}

Result<int64_t> ConfigJson::integer(std::string_view field, IntegerRange range, int64_t if_missing) const {
  if (!get(field)) return if_missing;
  return integer(field, range);
}

Result<std::optional<int64_t>> ConfigJson::optional_integer(std::string_view field,
                                                            IntegerRange range) const {
  if (!get(field)) return std::optional<int64_t>{};
  PLIMSOLL_ASSIGN(const int64_t value, integer(field, range));
  return std::optional<int64_t>(value);
}

Result<double> ConfigJson::number(std::string_view field, NumberRange range) const {
  const Tree* value = get(field);
  const bool numeric = value && (value->kind == Tree::Kind::kInteger || value->kind == Tree::Kind::kNumber);
  if (!numeric || !(value->number >= range.least && value->number <= range.most))
    return error(field, range_text(range));
  return value->number;
}

Result<double> ConfigJson::number(std::string_view field, NumberRange range, double if_missing) const {
  if (!get(field)) return if_missing;
  return number(field, range);
}

Result<bool> ConfigJson::boolean(std::string_view field, bool if_missing) const {
  const Tree* value = get(field);
  if (!value) return if_missing;
  if (value->kind != Tree::Kind::kBool) return error(field, "true or false");
  return value->boolean;
}

Result<std::string> ConfigJson::string(std::string_view field) const {
  const Tree* value = get(field);
  if (!value || value->kind != Tree::Kind::kString) return error(field, "a string");
  return value->text;
}

Result<std::string> ConfigJson::string(std::string_view field, std::string_view if_missing) const {
  if (!get(field)) return std::string(if_missing);
  return string(field);
}

Result<std::vector<int64_t>> ConfigJson::integers(std::string_view field, IntegerRange range) const {
  std::vector<int64_t> values;
  const Tree* value = get(field);
  if (!value) return values;
  const std::vector<Tree> one = {*value};
  for (const Tree& item : value->kind == Tree::Kind::kList ? value->items : one) {
    if (item.kind != Tree::Kind::kInteger || item.integer < range.least || item.integer > range.most)
      return error(field, range_text(range) + ", or a list of such");
    values.push_back(item.integer);
  }
  return values;
}

Result<std::optional<ConfigJson>> ConfigJson::object(std::string_view field) const {
  const Tree* value = get(field);
  if (!value) return std::optional<ConfigJson>{};
  if (value->kind != Tree::Kind::kMap) return error(field, "an object");
  ConfigJson object(*value, source_ + ": " + std::string(field));
  object.within_ = within_ + std::string(field) + ".";
  return std::optional<ConfigJson>(std::move(object));
}

Status ConfigJson::require(std::string_view field, const Tree& value, std::string_view why) const {
  const Tree* mine = get(field);
  if (mine && !same_value(*mine, value)) return error(field, value.describe(), std::string(why));
  return Ok{};
}

Status ConfigJson::require_absent(std::initializer_list<std::string_view> fields) const {
  for (const std::string_view field : fields)
    if (has(field)) return error(field, "no such field: its effect is not supported");
  return Ok{};
}

namespace {

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// The model_type that transformers' class of an encoder of text implies, whichever head it has; empty for
/// any other class.
std::string encoder_of(std::string_view architecture) {
  constexpr std::pair<std::string_view, std::string_view> kEncoders[] = {
      {"Bert", "bert"},           {"Roberta", "roberta"},       {"XLMRoberta", "xlm-roberta"},
      {"Camembert", "camembert"}, {"DistilBert", "distilbert"}, {"ModernBert", "modernbert"}};
  constexpr std::string_view kHeads[] = {"Model",
                                         "ForMaskedLM",
                                         "ForPreTraining",
                                         "ForSequenceClassification",
                                         "ForTokenClassification",
                                         "ForQuestionAnswering",
                                         "ForMultipleChoice",
                                         "ForNextSentencePrediction"};
  for (const auto& [name, type] : kEncoders)
    for (const std::string_view head : kHeads)
      if (architecture.starts_with(name) && architecture.substr(name.size()) == head)
        return std::string(type);
  return {};
}

/// The same of any class that is read.
std::string type_of(std::string_view architecture) {
  // Image models are published without a head too.
  constexpr std::string_view kBare[] = {"ViTModel", "Dinov2Model", "ConvNextModel", "ResNetModel"};
  if (std::string encoder = encoder_of(architecture); !encoder.empty()) return encoder;
  if (architecture == "GPT2LMHeadModel") return "gpt2";
  const auto without = [&](std::string_view end) {
    return lower(std::string(architecture.substr(0, architecture.size() - end.size())));
  };
  for (const std::string_view bare : kBare)
    if (architecture == bare) return without("Model");
  for (const std::string_view head : {"ForCausalLM", "ForSequenceClassification", "ForImageClassification"})
    if (architecture.ends_with(head)) return without(head);
  return {};
}

}  // namespace

Result<std::string> ConfigJson::model_type() const {
  std::string implied;
  if (const Tree* architectures = get("architectures")) {
    for (const Tree& item : architectures->items)
      if (std::string type = type_of(item.text); !type.empty()) implied = std::move(type);
    if (implied.empty())
      return error(
          "architectures",
          "a list with a model that ends in ForCausalLM (or GPT2LMHeadModel), ForSequenceClassification "
          "or ForImageClassification, or an encoder of text (BertModel, BertForMaskedLM)");
  }
  if (has("model_type")) return string("model_type");
  if (implied.empty()) return error("model_type", "a family's name such as llama or gpt2");
  return implied;
}

void ConfigJson::ignore(std::initializer_list<std::string_view> fields) const {
  for (const std::string_view field : fields) read_.emplace(field);
}

std::vector<std::string> ConfigJson::unread_fields() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : fields_.members)
    if (!read_.contains(name)) names.push_back(name);
  return names;
}

Result<ConfigJson> parse_config_json(std::string_view text, std::string source) {
  auto tree = parse_json(text, kLimits);
  if (!tree) return std::move(tree).error().at(source);
  if (tree->kind != Tree::Kind::kMap)
    return Error{ErrorCode::kBadData, "a config.json is a JSON object, this is " + tree->describe(), source,
                 "name the config.json of a model"};
  return ConfigJson(std::move(*tree), std::move(source));
}

Result<ConfigJson> read_config_json(const std::string& path) {
  PLIMSOLL_ASSIGN(const std::string text, read_small_file(path, kLimits.max_bytes));
  return parse_config_json(text, path);
}

}  // namespace plimsoll::io
