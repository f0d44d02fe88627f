#include "models/lora_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/model_config.h"
#include "io/python_json.h"
#include "io/safetensors_reader.h"
#include "models/module_names.h"

namespace plimsoll::models {
namespace {

/// Fields that say nothing of the mathematics.
constexpr std::array<std::string_view, 13> kRemarks = {"auto_mapping",
                                                       "base_model_name_or_path",
                                                       "revision",
                                                       "inference_mode",
                                                       "fan_in_fan_out",
                                                       "peft_version",
                                                       "megatron_core",
                                                       "task_type",
                                                       "runtime_config",
                                                       "eva_config",
                                                       "ensure_weight_tying",
                                                       "corda_config",
                                                       "lora_ga_config"};

Result<ModuleNames> names_of(const io::ConfigJson& config, std::string_view field) {
  const io::Tree* value = config.fields().find(field);
  config.ignore({field});
  ModuleNames names;
  if (value == nullptr || value->is_null()) return names;
  if (value->kind == io::Tree::Kind::kString) {
    names = {{value->text}, true};
    return names;
  }
  if (value->kind != io::Tree::Kind::kList) return config.error(field, "a list of names, or a pattern");
  for (const io::Tree& item : value->items) {
    if (item.kind != io::Tree::Kind::kString || item.text.empty())
      return config.error(field, "a list of names, or a pattern");
    names.names.push_back(item.text);
  }
  return names;
}

/// A list of names where one alone may stand as itself; the empty one is none.
Result<std::vector<std::string>> list_of(const io::ConfigJson& config, std::string_view field) {
  PLIMSOLL_ASSIGN(ModuleNames names, names_of(config, field));
  if (names.is_pattern && names.names.front().empty()) names.names.clear();
  return std::move(names.names);
}

template <typename T>
Status read_patterns(const io::ConfigJson& config, std::string_view field,
                     std::vector<std::pair<std::string, T>>& out) {
  PLIMSOLL_ASSIGN(const auto map, config.object(field));
  if (!map) return Ok{};
  for (const auto& [pattern, value] : map->fields().members) {
    const bool whole = value.kind == io::Tree::Kind::kInteger;
    const bool is_number = whole || (std::is_same_v<T, double> && value.kind == io::Tree::Kind::kNumber);
    if (!is_number || !(value.number > 0) || value.number > 1e6)
      return config.error(field, "numbers above 0 by pattern");
    out.emplace_back(pattern, whole ? static_cast<T>(value.integer) : static_cast<T>(value.number));
  }
  return Ok{};
}

/// What these take from the base is the same whenever it is taken; CorDA's and EVA's depend on data.
Status read_init(const io::ConfigJson& config, LoraSpec& spec) {
  const io::Tree* value = config.fields().find("init_lora_weights");
  config.ignore({"init_lora_weights"});
  if (value == nullptr || value->is_null()) return Ok{};
  if (value->kind == io::Tree::Kind::kBool) {
    spec.init_lora_weights = value->boolean ? LoraInit::kTrue : LoraInit::kFalse;
    return Ok{};
  }
  constexpr std::pair<std::string_view, LoraInit> kKnown[] = {
      {"gaussian", LoraInit::kGaussian}, {"pissa", LoraInit::kPissa}, {"olora", LoraInit::kOlora},
      {"loftq", LoraInit::kLoftq},       {"eva", LoraInit::kTrue},    {"orthogonal", LoraInit::kTrue}};
  for (const auto& [word, init] : kKnown)
    if (value->text == word) {
      spec.init_lora_weights = init;
      return Ok{};
    }
  return config.error(
      "init_lora_weights", "true, false, gaussian, pissa, olora or loftq",
      "such an adapter belongs to a base model whose weights were changed at random or by data; in "
      "PEFT, save_pretrained(path_initial_model_for_weight_conversion=…) makes a plain one");
}

/// What of the base's quantisation a file says: BitsAndBytesConfig's names beside PEFT's two, which our files
/// have so that the same codes can be made again.
Result<std::optional<ir::DType>> loftq_dtype(const io::ConfigJson& fields, int64_t bits) {
  if (bits == 8) return std::optional(ir::DType::kI8Rows);
  if (!fields.has("bnb_4bit_quant_type")) return std::optional<ir::DType>();
  PLIMSOLL_ASSIGN(const std::string type, fields.string("bnb_4bit_quant_type"));
  if (type != "nf4" && type != "fp4") return fields.error("bnb_4bit_quant_type", "nf4 or fp4");
  PLIMSOLL_ASSIGN(const bool twice, fields.boolean("bnb_4bit_use_double_quant", false));
  if (type == "nf4") return std::optional(twice ? ir::DType::kNf4Double : ir::DType::kNf4);
  return std::optional(twice ? ir::DType::kFp4Double : ir::DType::kFp4);
}

/// Of adapters that began so; of others PEFT passes over it.
Status read_loftq(const io::ConfigJson& config, LoraSpec& spec) {
  if (spec.init_lora_weights != LoraInit::kLoftq) {
    config.ignore({"loftq_config"});
    return Ok{};
  }
  PLIMSOLL_ASSIGN(const auto fields, config.object("loftq_config"));
  Loftq& loftq = spec.loftq_config;
  loftq.bits = 4;
  if (!fields) return Ok{};
  PLIMSOLL_ASSIGN(loftq.bits, fields->integer("loftq_bits", {2, 8}, 4));
  if (loftq.bits != 4 && loftq.bits != 8) return fields->error("loftq_bits", "4 or 8");
  PLIMSOLL_ASSIGN(loftq.iterations, fields->integer("loftq_iter", {1, 1000}, 1));
  PLIMSOLL_ASSIGN(loftq.dtype, loftq_dtype(*fields, loftq.bits));
  PLIMSOLL_ASSIGN(loftq.skip_modules, list_of(*fields, "llm_int8_skip_modules"));
  return Ok{};
}

/// Tokens, or a map from the embedding's name to them.
Status read_tokens(const io::ConfigJson& config, TrainableTokens& out) {
  constexpr const char* kField = "trainable_token_indices";
  const io::Tree* value = config.fields().find(kField);
  config.ignore({kField});
  if (value == nullptr || value->is_null()) return Ok{};
  const io::Tree* list = value;
  if (value->kind == io::Tree::Kind::kMap && value->members.size() == 1) {
    out.module = value->members.front().first;
    list = &value->members.front().second;
  }
  if (list->kind != io::Tree::Kind::kList)
    return config.error(kField, "a list of tokens, or of one embedding");
  for (const io::Tree& item : list->items) {
    if (item.kind != io::Tree::Kind::kInteger || item.integer < 0 || item.integer > 1 << 30)
      return config.error(kField, "tokens from 0 on");
    if (!out.tokens.empty() && item.integer <= out.tokens.back())
      return config.error(kField, "tokens that ascend", "this version keeps their rows in that order");
    out.tokens.push_back(item.integer);
  }
  return Ok{};
}

/// What is off in every shape that JSON has for it.
bool is_off(const io::Tree& value) {
  return value.is_null() || (value.kind == io::Tree::Kind::kBool && !value.boolean) ||
         (value.kind == io::Tree::Kind::kList && value.items.empty()) ||
         (value.kind == io::Tree::Kind::kMap && value.members.empty()) ||
         (value.kind == io::Tree::Kind::kString && value.text.empty());
}

Status refuse_the_rest(const io::ConfigJson& config) {
  for (const std::string& field : config.unread_fields()) {
    if (std::find(kRemarks.begin(), kRemarks.end(), field) != kRemarks.end()) continue;
    const io::Tree* value = config.fields().find(field);
    if (is_off(*value) || field == "qalora_group_size") continue;
    return config.error(field, "none", "this version has no adapters with it");
  }
  return Ok{};
}

Result<LoraSpec> read_fields(const io::ConfigJson& config) {
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
  PLIMSOLL_TRY(read_loftq(config, spec));
  PLIMSOLL_ASSIGN(spec.use_dora, config.boolean("use_dora", false));
  PLIMSOLL_ASSIGN(spec.lora_bias, config.boolean("lora_bias", false));
  PLIMSOLL_TRY(read_tokens(config, spec.trainable_token_indices));
  PLIMSOLL_TRY(refuse_the_rest(config));
  return spec;
}

io::Tree integers(const std::vector<int64_t>& values) {
  io::Tree list = io::Tree::list();
  for (const int64_t value : values) list.items.push_back(io::Tree::of(value));
  return list;
}

io::Tree tree_of(const std::vector<std::string>& names) {
  io::Tree list = io::Tree::list();
  for (const std::string& name : names) list.items.push_back(io::Tree::of(name));
  return list;
}
io::Tree tree_of(const ModuleNames& names) {
  if (!names.given()) return {};
  return names.is_pattern ? io::Tree::of(names.names.front()) : tree_of(names.names);
}
io::Tree or_null(const std::vector<std::string>& names) {
  return names.empty() ? io::Tree() : tree_of(names);
}

template <typename T>
io::Tree tree_of(const std::vector<std::pair<std::string, T>>& patterns) {
  io::Tree map = io::Tree::map();
  for (const auto& [pattern, value] : patterns) map.set(pattern, io::Tree::of(value));
  return map;
}

io::Tree tree_of(LoraInit init) {
  switch (init) {
    case LoraInit::kGaussian:
      return io::Tree::of(std::string("gaussian"));
    case LoraInit::kPissa:
      return io::Tree::of(std::string("pissa"));
    case LoraInit::kOlora:
      return io::Tree::of(std::string("olora"));
    case LoraInit::kLoftq:
      return io::Tree::of(std::string("loftq"));
    default:
      return io::Tree::of(init == LoraInit::kTrue);
  }
}

io::Tree tree_of(const Loftq& loftq) {
  io::Tree fields = io::Tree::map(
      {{"loftq_bits", io::Tree::of(loftq.bits)}, {"loftq_iter", io::Tree::of(loftq.iterations)}});
  if (loftq.dtype && loftq.bits == 4) {
    const bool is_nf4 = *loftq.dtype == ir::DType::kNf4 || *loftq.dtype == ir::DType::kNf4Double;
    fields.set("bnb_4bit_quant_type", io::Tree::of(std::string(is_nf4 ? "nf4" : "fp4")));
    fields.set("bnb_4bit_use_double_quant",
               io::Tree::of(*loftq.dtype == ir::DType::kNf4Double || *loftq.dtype == ir::DType::kFp4Double));
  }
  if (!loftq.skip_modules.empty()) fields.set("llm_int8_skip_modules", tree_of(loftq.skip_modules));
  return fields;
}

io::Tree tree_of(const TrainableTokens& trained) {
  if (trained.tokens.empty()) return {};
  io::Tree tokens = integers(trained.tokens);
  return trained.module.empty() ? tokens : io::Tree::map({{trained.module, std::move(tokens)}});
}

/// 16 rather than 16.0, as PEFT's users write it.
io::Tree number(double value) {
  const auto whole = static_cast<int64_t>(value);
  return static_cast<double>(whole) == value ? io::Tree::of(whole) : io::Tree::of(value);
}

/// Embeddings and heads, alone or as what an adapter lies over.
std::vector<BroughtTensor> brought_by(const io::SafetensorsFile& file) {
  constexpr std::string_view kRoot = "base_model.model.", kWeight = ".weight", kBase = ".base_layer";
  std::vector<BroughtTensor> brought;
  for (const io::SafetensorsTensor& tensor : file.tensors()) {
    std::string_view module = tensor.name;
    if (!module.starts_with(kRoot) || !module.ends_with(kWeight)) continue;
    module.remove_prefix(kRoot.size());
    module.remove_suffix(kWeight.size());
    if (module.ends_with(kBase)) module.remove_suffix(kBase.size());
    const std::string last = last_part(module);
    if (last == "embed_tokens" || last == "wte" || last == "lm_head")
      brought.push_back({std::string(module) + std::string(kWeight), tensor.name, tensor.shape});
  }
  return brought;
}

}  // namespace

Result<LoraSpec> parse_adapter_config(std::string_view text, const std::string& source) {
  PLIMSOLL_ASSIGN(const io::ConfigJson config, io::parse_config_json(text, source));
  return read_fields(config);
}

Result<LoraSpec> read_adapter_config(const std::string& directory) {
  PLIMSOLL_ASSIGN(const io::ConfigJson config, io::read_config_json(directory + "/adapter_config.json"));
  PLIMSOLL_ASSIGN(LoraSpec spec, read_fields(config));
  const auto file = io::SafetensorsFile::open(directory + "/adapter_model.safetensors");
  if (file) spec.brought = brought_by(*file);  // what is wrong with it who reads it says
  return spec;
}

std::string adapter_config_text(const LoraSpec& spec, const AdapterOf& of) {
  ModuleNames targets = spec.target_modules;
  if (!targets.given()) targets.names = default_target_modules(of.model_type);
  std::vector<std::string> saved = spec.modules_to_save;
  if (!of.head.empty() && std::find(saved.begin(), saved.end(), of.head) == saved.end())
    saved.push_back(of.head);
  const io::Tree task = of.task.empty() ? io::Tree() : io::Tree::of(of.task);
  const char* const bias = spec.bias == LoraBias::kAll    ? "all"
                           : spec.bias == LoraBias::kNone ? "none"
                                                          : "lora_only";
  io::Tree fields = io::Tree::map({
      {"peft_type", io::Tree::of(std::string("LORA"))},
      {"task_type", task},
      {"base_model_name_or_path", of.base.empty() ? io::Tree() : io::Tree::of(of.base)},
      {"revision", io::Tree()},
      {"inference_mode", io::Tree::of(true)},
      {"r", io::Tree::of(spec.r)},
      {"lora_alpha", number(spec.lora_alpha)},
      {"lora_dropout", number(spec.lora_dropout)},
      {"target_modules", tree_of(targets)},
      {"exclude_modules", tree_of(spec.exclude_modules)},
      {"layers_to_transform",
       spec.layers_to_transform.empty() ? io::Tree() : integers(spec.layers_to_transform)},
      {"layers_pattern", or_null(spec.layers_pattern)},
      {"bias", io::Tree::of(std::string(bias))},
      {"fan_in_fan_out", io::Tree::of(of.transposed)},
      {"use_rslora", io::Tree::of(spec.use_rslora)},
      {"use_dora", io::Tree::of(spec.use_dora)},
      {"lora_bias", io::Tree::of(spec.lora_bias)},
      {"trainable_token_indices", tree_of(spec.trainable_token_indices)},
      {"modules_to_save", or_null(saved)},
      {"rank_pattern", tree_of(spec.rank_pattern)},
      {"alpha_pattern", tree_of(spec.alpha_pattern)},
      {"init_lora_weights", tree_of(spec.init_lora_weights)},
  });
  if (spec.init_lora_weights == LoraInit::kLoftq) fields.set("loftq_config", tree_of(spec.loftq_config));
  return io::to_python_json(fields) + "\n";
}

}  // namespace plimsoll::models
