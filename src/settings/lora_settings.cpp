#include "settings/lora_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "settings/declare.h"
#include "settings/wrong.h"

namespace plimsoll::settings {
namespace {

constexpr double kMaxRank = 65536;

/// A path of the command line is cut at its dots, a pattern's own as well: nested maps are joined again.
template <typename T>
Status read_pattern(const char* setting, const std::string& prefix, const io::Tree& map,
                    std::vector<std::pair<std::string, T>>& out) {
  for (const auto& [key, value] : map.members) {
    const std::string pattern = prefix + key;
    if (value.kind == io::Tree::Kind::kMap) {
      PLIMSOLL_TRY(read_pattern(setting, pattern + ".", value, out));
      continue;
    }
    const bool whole = value.kind == io::Tree::Kind::kInteger;
    const bool is_number = whole || (std::is_same_v<T, double> && value.kind == io::Tree::Kind::kNumber);
    if (!is_number || !(value.number > 0) || value.number > 1e6)
      return wrong_setting(fmt::format("{}: {} is {}, expected a number above 0", setting,
                                       pattern.substr(0, 100), value.describe()),
                           "write {q_proj: 16}, or a pattern for the end of a name instead of q_proj");
    out.emplace_back(pattern, whole ? static_cast<T>(value.integer) : static_cast<T>(value.number));
  }
  return Ok{};
}

/// Numbers from 0 of a list of words; `what` is what each is the number of.
Result<std::vector<int64_t>> numbers_of(const char* setting, const char* what,
                                        const std::vector<std::string>& words) {
  std::vector<int64_t> numbers;
  for (const std::string& text : words) {
    int64_t number = -1;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size() || number < 0)
      return wrong_setting(fmt::format("{}: '{}' is no {}", setting, text.substr(0, 100), what),
                           fmt::format("write the numbers of {}s, from 0: [0, 1, 2]", what));
    numbers.push_back(number);
  }
  return numbers;
}

models::LoraInit init_of(const std::string& word) {
  return word == "gaussian"          ? models::LoraInit::kGaussian
         : word == "false"           ? models::LoraInit::kFalse
         : word == "olora"           ? models::LoraInit::kOlora
         : word == "loftq"           ? models::LoraInit::kLoftq
         : word.starts_with("pissa") ? models::LoraInit::kPissa
                                     : models::LoraInit::kTrue;
}

models::LoraBias bias_of(const std::string& word) {
  return word == "all"         ? models::LoraBias::kAll
         : word == "lora_only" ? models::LoraBias::kLoraOnly
                               : models::LoraBias::kNone;
}

}  // namespace

Result<models::LoraSpec> lora_spec(const LoraSettings& s, models::LoraSpec spec) {
  if (s.r) spec.r = *s.r;
  if (s.lora_alpha) spec.lora_alpha = *s.lora_alpha;
  if (s.lora_dropout) spec.lora_dropout = *s.lora_dropout;
  if (s.target_modules.given()) spec.target_modules = s.target_modules;
  if (s.exclude_modules.given()) spec.exclude_modules = s.exclude_modules;
  if (s.use_rslora) spec.use_rslora = *s.use_rslora;
  if (s.bias != "auto") spec.bias = bias_of(s.bias);
  if (!s.modules_to_save.empty()) spec.modules_to_save = s.modules_to_save;
  if (!s.layers_pattern.empty()) spec.layers_pattern = s.layers_pattern;
  if (!s.layers_to_transform.empty()) {
    PLIMSOLL_ASSIGN(spec.layers_to_transform,
                    numbers_of("lora.layers_to_transform", "layer", s.layers_to_transform));
    if (spec.target_modules.is_pattern)
      return wrong_setting("lora.layers_to_transform has no effect with a pattern in lora.target_modules",
                           "put the layers into the pattern, or list the modules");
  }
  if (!s.layers_pattern.empty() && spec.layers_to_transform.empty())
    return wrong_setting("lora.layers_pattern has no effect without lora.layers_to_transform, as in PEFT",
                         "set lora.layers_to_transform too: [0, 1, 2], or leave the pattern out");
  if (!s.rank_pattern.is_null()) {
    spec.rank_pattern.clear();
    PLIMSOLL_TRY(read_pattern("lora.rank_pattern", "", s.rank_pattern, spec.rank_pattern));
  }
  if (!s.alpha_pattern.is_null()) {
    spec.alpha_pattern.clear();
    PLIMSOLL_TRY(read_pattern("lora.alpha_pattern", "", s.alpha_pattern, spec.alpha_pattern));
  }
  if (s.use_dora) spec.use_dora = *s.use_dora;
  if (s.lora_bias) spec.lora_bias = *s.lora_bias;
  if (!s.trainable_token_indices.empty()) {
    std::vector<int64_t>& tokens = spec.trainable_token_indices.tokens;
    PLIMSOLL_ASSIGN(tokens, numbers_of("lora.trainable_token_indices", "token", s.trainable_token_indices));
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  }
  // How an adapter began is what its own files say.
  if (!s.adapter.empty()) return spec;
  spec.init_lora_weights = init_of(s.init_lora_weights);
  spec.loftq_config = {.bits = s.loftq_config.loftq_bits.value_or(0),
                       .iterations = s.loftq_config.loftq_iter};
  return spec;
}

Status check_adapter_agrees(const LoraSettings& s, const models::LoraSpec& adapter,
                            const std::string& directory) {
  PLIMSOLL_ASSIGN(const models::LoraSpec asked, lora_spec(s, adapter));
  const char* setting = asked.r != adapter.r                                       ? "r"
                        : asked.lora_alpha != adapter.lora_alpha                   ? "lora_alpha"
                        : !(asked.target_modules == adapter.target_modules)        ? "target_modules"
                        : !(asked.exclude_modules == adapter.exclude_modules)      ? "exclude_modules"
                        : asked.layers_to_transform != adapter.layers_to_transform ? "layers_to_transform"
                        : asked.layers_pattern != adapter.layers_pattern           ? "layers_pattern"
                        : asked.use_rslora != adapter.use_rslora                   ? "use_rslora"
                        : asked.bias != adapter.bias                               ? "bias"
                        : asked.modules_to_save != adapter.modules_to_save         ? "modules_to_save"
                        : asked.rank_pattern != adapter.rank_pattern               ? "rank_pattern"
                        : asked.alpha_pattern != adapter.alpha_pattern             ? "alpha_pattern"
                        : asked.use_dora != adapter.use_dora                       ? "use_dora"
                        : asked.lora_bias != adapter.lora_bias                     ? "lora_bias"
                        : !(asked.trainable_token_indices == adapter.trainable_token_indices)
                            ? "trainable_token_indices"
                            : nullptr;
  if (setting == nullptr) return Ok{};
  Error error =
      wrong_setting(fmt::format("lora.{} is {}, and the adapter of lora.adapter has another", setting,
                                setting_text(*find_setting(fmt::format("lora.{}", setting)),
                                             [&] {
                                               RunConfig run;
                                               run.lora = s;
                                               return run;
                                             }())),
                    "leave it out: an adapter keeps its shape and scale");
  error.where = directory;
  return error;
}

Status check_lora(const RunConfig& config) {
  if (!config.lora.enabled) return Ok{};
  PLIMSOLL_TRY(lora_spec(config.lora));
  if (!config.training.unfreeze.empty() && config.training.freeze.empty())
    return wrong_setting("training.unfreeze has no effect with lora: the base model is frozen",
                         "name modules to train in addition to the adapters in lora.modules_to_save");
  if (const auto bits = config.lora.loftq_config.loftq_bits; bits && *bits != 4 && *bits != 8)
    return wrong_setting(fmt::format("lora.loftq_config.loftq_bits is {}, expected 4 or 8", *bits),
                         "leave it out: quantization decides it");
  const std::string& dtype = config.output.dtype;
  if (dtype != "auto" && dtype != "fp32")
    return wrong_setting(fmt::format("output.dtype is {}, and adapters are stored in fp32", dtype),
                         "leave it out; plimsoll merge writes a whole model in its own dtype");
  if (config.training.state.master_weights.value_or(false))
    return wrong_setting("training.state.master_weights is true, and adapters are fp32 themselves",
                         "leave it out");
  return Ok{};
}

void add_lora_settings(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  const char* const kLeave = "leave it out";
  add(plain(PLIMSOLL_FIELD(lora.adapter), kWhat,
            "continue the adapter of this directory, with its own rank, scale and modules"));
  add(number(PLIMSOLL_FIELD(lora.r), kWhat, "rank of the adapters; null: 8, as in PEFT", 1, kMaxRank));
  add(above(PLIMSOLL_FIELD(lora.lora_alpha), kWhat,
            "the adapters' output is scaled by lora_alpha / r; null: 8", 0, 1e6));
  add(number(PLIMSOLL_FIELD(lora.lora_dropout), kWhat, "dropout on the input of an adapter; null: 0", 0,
             0.999));
  add(plain(PLIMSOLL_FIELD(lora.target_modules), kWhat,
            "modules with an adapter: a list of names, a pattern, all-linear; null: PEFT's default"));
  add(plain(PLIMSOLL_FIELD(lora.exclude_modules), kWhat, "modules without an adapter: names or a pattern"));
  add(plain(PLIMSOLL_FIELD(lora.layers_to_transform), kWhat, "only these layers get adapters, by number"));
  add(plain(PLIMSOLL_FIELD(lora.layers_pattern), kWhat, "name before a layer's number: layers, h"));
  add(plain(PLIMSOLL_FIELD(lora.use_rslora), kWhat, "scale by lora_alpha / sqrt(r); null: false"));
  add(plain(PLIMSOLL_FIELD(lora.bias), kWhat, "biases that are trained; auto: none, or the adapter's",
            {"auto", "none", "all", "lora_only"}));
  add(plain(PLIMSOLL_FIELD(lora.modules_to_save), kWhat, "modules that are trained and saved in full"));
  add(plain(PLIMSOLL_FIELD(lora.rank_pattern), kWhat,
            "other ranks, by pattern for the end of a name: {q_proj: 16}"));
  add(plain(PLIMSOLL_FIELD(lora.alpha_pattern), kWhat, "other values of alpha, in the same form"));
  add(plain(PLIMSOLL_FIELD(lora.init_lora_weights), kWhat,
            "initial values; true: B is zero; pissa, olora: from base weights; loftq: from its error",
            {"true", "false", "gaussian", "pissa", "pissa_niter_4", "pissa_niter_16", "olora", "loftq", "eva",
             "orthogonal"}));
  takes_only(list, "lora.init_lora_weights",
             {"true", "false", "gaussian", "pissa", "pissa_niter_4", "pissa_niter_16", "olora", "loftq"});
  add(number(PLIMSOLL_FIELD(lora.loftq_config.loftq_bits), kWhat,
             "bits of the base weights with loftq: only 4 or 8; null: those of quantization", 4, 8));
  add(number(PLIMSOLL_FIELD(lora.loftq_config.loftq_iter), kWhat,
             "iterations of rounding the base weights and decomposing the error", 1, 1000));
  only_with(list, {"lora.loftq_config."}, {.path = "lora.init_lora_weights", .values = {"loftq"}});
  add(plain(PLIMSOLL_FIELD(lora.use_dora), kWhat,
            "train direction and magnitude of the weights (DoRA); null: false"));
  add(plain(PLIMSOLL_FIELD(lora.lora_bias), kWhat, "a bias for B; null: false"));
  add(plain(PLIMSOLL_FIELD(lora.trainable_token_indices), kWhat, "tokens whose embedding rows are trained"));
  add(planned("lora.target_parameters", kWhat, "adapters of parameters that are not linear layers", kLeave));
}

}  // namespace plimsoll::settings
