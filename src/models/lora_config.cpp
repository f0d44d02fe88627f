#include "models/lora_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/model_config.h"

namespace plimsoll::models {
namespace {

/// Fields that say nothing of the mathematics.
constexpr std::array<std::string_view, 14> kRemarks = {
    "auto_mapping", "base_model_name_or_path", "revision",     "inference_mode", "fan_in_fan_out",
    "peft_version", "megatron_core",           "task_type",    "runtime_config", "loftq_config",
    "eva_config",   "ensure_weight_tying",     "corda_config", "lora_ga_config"};

Result<ModuleNames> names_of(const ConfigJson& config, std::string_view field) {
  const Tree* value = config.fields().find(field);
  config.ignore({field});
  ModuleNames names;
  if (value == nullptr || value->is_null()) return names;
  if (value->kind == Tree::Kind::kString) {
    names = {{value->text}, true};
    return names;
  }
  if (value->kind != Tree::Kind::kList) return config.error(field, "a list of names, or a pattern");
  for (const Tree& item : value->items) {
    if (item.kind != Tree::Kind::kString || item.text.empty())
      return config.error(field, "a list of names, or a pattern");
    names.names.push_back(item.text);
  }
  return names;
}

/// A list of names where one alone may stand as itself.
Result<std::vector<std::string>> list_of(const ConfigJson& config, std::string_view field) {
  PLIMSOLL_ASSIGN(ModuleNames names, names_of(config, field));
  return std::move(names.names);
}

template <typename T>
Status read_patterns(const ConfigJson& config, std::string_view field,
                     std::vector<std::pair<std::string, T>>& out) {
  PLIMSOLL_ASSIGN(const auto map, config.object(field));
  if (!map) return Ok{};
  for (const auto& [pattern, value] : map->fields().members) {
    const bool whole = value.kind == Tree::Kind::kInteger;
    const bool is_number = whole || (std::is_same_v<T, double> && value.kind == Tree::Kind::kNumber);
    if (!is_number || !(value.number > 0) || value.number > 1e6)
      return config.error(field, "numbers above 0 by pattern");
    out.emplace_back(pattern, whole ? static_cast<T>(value.integer) : static_cast<T>(value.number));
  }
  return Ok{};
}

/// PiSSA, OLoRA and their kin are trained upon another base than the one in the model's files.
Status read_init(const ConfigJson& config, LoraSpec& spec) {
  const Tree* value = config.fields().find("init_lora_weights");
  config.ignore({"init_lora_weights"});
  if (value == nullptr || value->is_null()) return Ok{};
  if (value->kind == Tree::Kind::kBool) {
    spec.init_lora_weights = value->boolean ? LoraInit::kTrue : LoraInit::kFalse;
    return Ok{};
  }
  if (value->text == "gaussian") spec.init_lora_weights = LoraInit::kGaussian;
  for (const std::string_view same : {"gaussian", "eva", "orthogonal"})
    if (value->text == same) return Ok{};
  return config.error("init_lora_weights", "true, false or gaussian",
                      "such an adapter belongs to a base whose weights it has changed; in PEFT, "
                      "save_pretrained(path_initial_model_for_weight_conversion=…) makes a plain one of it");
}

/// What is off in every shape that JSON has for it.
bool is_off(const Tree& value) {
  return value.is_null() || (value.kind == Tree::Kind::kBool && !value.boolean) ||
         (value.kind == Tree::Kind::kList && value.items.empty()) ||
         (value.kind == Tree::Kind::kMap && value.members.empty()) ||
         (value.kind == Tree::Kind::kString && value.text.empty());
}

Status refuse_the_rest(const ConfigJson& config) {
  for (const std::string& field : config.unread_fields()) {
    if (std::find(kRemarks.begin(), kRemarks.end(), field) != kRemarks.end()) continue;
    const Tree* value = config.fields().find(field);
    if (is_off(*value) || (field == "qalora_group_size")) continue;
    return config.error(field, "none", "this version has no adapters with it");
  }
  return Ok{};
}

Result<LoraSpec> read_fields(const ConfigJson& config) {
  LoraSpec spec;
  PLIMSOLL_ASSIGN(const std::string type, config.string("peft_type"));
  if (type != "LORA")
    return config.error("peft_type", "LORA", fmt::format("adapters of type {} are not available", type));
  PLIMSOLL_ASSIGN(spec.r, config.integer("r", {1, 65536}, 8));
  PLIMSOLL_ASSIGN(spec.lora_alpha, config.number("lora_alpha", {0, 1e6}, 8));
  PLIMSOLL_ASSIGN(spec.lora_dropout, config.number("lora_dropout", {0, 0.999}, 0));
  PLIMSOLL_ASSIGN(spec.target_modules, names_of(config, "target_modules"));
  PLIMSOLL_ASSIGN(spec.exclude_modules, names_of(config, "exclude_modules"));
  PLIMSOLL_ASSIGN(spec.layers_to_transform, config.integers("layers_to_transform", {0, 1 << 20}));
  PLIMSOLL_ASSIGN(spec.layers_pattern, list_of(config, "layers_pattern"));
  PLIMSOLL_ASSIGN(spec.modules_to_save, list_of(config, "modules_to_save"));
  PLIMSOLL_ASSIGN(spec.use_rslora, config.boolean("use_rslora", false));
  PLIMSOLL_ASSIGN(const std::string bias, config.string("bias", "none"));
  if (bias != "none" && bias != "all" && bias != "lora_only")
    return config.error("bias", "none, all or lora_only");
  spec.bias = bias == "all" ? LoraBias::kAll : bias == "none" ? LoraBias::kNone : LoraBias::kLoraOnly;
  PLIMSOLL_TRY(read_patterns(config, "rank_pattern", spec.rank_pattern));
  PLIMSOLL_TRY(read_patterns(config, "alpha_pattern", spec.alpha_pattern));
  PLIMSOLL_TRY(read_init(config, spec));
  PLIMSOLL_TRY(refuse_the_rest(config));
  return spec;
}

Tree tree_of(const std::vector<std::string>& names) {
  Tree list = Tree::list();
  for (const std::string& name : names) list.items.push_back(Tree::of(name));
  return list;
}
Tree tree_of(const ModuleNames& names) {
  if (!names.given()) return {};
  return names.is_pattern ? Tree::of(names.names.front()) : tree_of(names.names);
}
Tree or_null(const std::vector<std::string>& names) { return names.empty() ? Tree() : tree_of(names); }

template <typename T>
Tree tree_of(const std::vector<std::pair<std::string, T>>& patterns) {
  Tree map = Tree::map();
  for (const auto& [pattern, value] : patterns) map.set(pattern, Tree::of(value));
  return map;
}

/// 16 rather than 16.0, as PEFT's users write it.
Tree number(double value) {
  const auto whole = static_cast<int64_t>(value);
  return static_cast<double>(whole) == value ? Tree::of(whole) : Tree::of(value);
}

}  // namespace

Result<LoraSpec> parse_adapter_config(std::string_view text, const std::string& source) {
  PLIMSOLL_ASSIGN(const ConfigJson config, parse_config_json(text, source));
  return read_fields(config);
}

Result<LoraSpec> read_adapter_config(const std::string& directory) {
  PLIMSOLL_ASSIGN(const ConfigJson config, read_config_json(directory + "/adapter_config.json"));
  return read_fields(config);
}

std::string adapter_config_text(const LoraSpec& spec, const AdapterOf& of) {
  ModuleNames targets = spec.target_modules;
  if (!targets.given()) targets.names = default_target_modules(of.model_type);
  std::vector<std::string> saved = spec.modules_to_save;
  if (of.classifies && std::find(saved.begin(), saved.end(), "score") == saved.end())
    saved.emplace_back("score");
  Tree layers = Tree::list();
  for (const int64_t layer : spec.layers_to_transform) layers.items.push_back(Tree::of(layer));
  const LoraInit init = spec.init_lora_weights;
  const char* const bias = spec.bias == LoraBias::kAll    ? "all"
                           : spec.bias == LoraBias::kNone ? "none"
                                                          : "lora_only";
  Tree fields = Tree::map({
      {"peft_type", Tree::of(std::string("LORA"))},
      {"task_type", Tree::of(std::string(of.classifies ? "SEQ_CLS" : "CAUSAL_LM"))},
      {"base_model_name_or_path", of.base.empty() ? Tree() : Tree::of(of.base)},
      {"revision", Tree()},
      {"inference_mode", Tree::of(true)},
      {"r", Tree::of(spec.r)},
      {"lora_alpha", number(spec.lora_alpha)},
      {"lora_dropout", number(spec.lora_dropout)},
      {"target_modules", tree_of(targets)},
      {"exclude_modules", tree_of(spec.exclude_modules)},
      {"layers_to_transform", spec.layers_to_transform.empty() ? Tree() : std::move(layers)},
      {"layers_pattern", or_null(spec.layers_pattern)},
      {"bias", Tree::of(std::string(bias))},
      {"fan_in_fan_out", Tree::of(of.transposed)},
      {"use_rslora", Tree::of(spec.use_rslora)},
      {"use_dora", Tree::of(false)},
      {"modules_to_save", or_null(saved)},
      {"rank_pattern", tree_of(spec.rank_pattern)},
      {"alpha_pattern", tree_of(spec.alpha_pattern)},
      {"init_lora_weights",
       init == LoraInit::kGaussian ? Tree::of(std::string("gaussian")) : Tree::of(init == LoraInit::kTrue)},
  });
  return to_json(fields) + "\n";
}

}  // namespace plimsoll::models
