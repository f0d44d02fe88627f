// Llama's config.json. Both spellings of the rotary settings are read (rope_theta + rope_scaling, and
// rope_parameters); missing fields take transformers' defaults where it has harmless ones.
#include "models/llama_config.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace plimsoll {
namespace {

// Bounds that keep every product of two sizes, and the parameters of all layers, far inside 64 bits.
constexpr IntegerRange kVocabRange = {1, int64_t{1} << 24};
constexpr IntegerRange kWidthRange = {1, int64_t{1} << 20};
constexpr IntegerRange kInnerRange = {1, int64_t{1} << 22};
constexpr IntegerRange kLayersRange = {1, 512};
constexpr IntegerRange kPositionsRange = {1, int64_t{1} << 28};
constexpr NumberRange kRopeFactorRange = {1.0, 1e6};

Result<RopeConfig> read_rope(const ConfigJson& rope, std::string_view type, double theta) {
  RopeConfig result;
  PLIMSOLL_ASSIGN(result.theta, rope.number("rope_theta", {1.0, 1e12}, theta));
  PLIMSOLL_TRY(
      rope.require("partial_rotary_factor", Tree::of(int64_t{1}), "partial rotation is not supported"));
  if (type == "default") return result;
  PLIMSOLL_ASSIGN(result.factor, rope.number("factor", kRopeFactorRange));
  if (type == "linear") {
    result.kind = RopeConfig::Kind::kLinear;
    return result;
  }
  result.kind = RopeConfig::Kind::kLlama3;
  PLIMSOLL_ASSIGN(result.low_freq_factor, rope.number("low_freq_factor", {1e-6, 1e6}));
  PLIMSOLL_ASSIGN(result.high_freq_factor, rope.number("high_freq_factor", {1e-6, 1e6}));
  if (!(result.high_freq_factor > result.low_freq_factor))
    return rope.error("high_freq_factor",
                      fmt::format("a number above low_freq_factor ({})", result.low_freq_factor));
  PLIMSOLL_ASSIGN(result.original_max_position_embeddings,
                  rope.integer("original_max_position_embeddings", kPositionsRange));
  return result;
}

/// Finds the rotary settings in either spelling and checks that the two do not contradict.
Result<RopeConfig> parse_rope(const ConfigJson& config) {
  PLIMSOLL_TRY(
      config.require("partial_rotary_factor", Tree::of(int64_t{1}), "partial rotation is not supported"));
  PLIMSOLL_ASSIGN(const double theta, config.number("rope_theta", {1.0, 1e12}, 10000.0));
  PLIMSOLL_ASSIGN(const auto old_spelling, config.object("rope_scaling"));
  PLIMSOLL_ASSIGN(const auto new_spelling, config.object("rope_parameters"));
  const ConfigJson rope = new_spelling   ? *new_spelling
                          : old_spelling ? *old_spelling
                                         : ConfigJson(Tree::map(), config.source());
  for (const auto& [name, value] : rope.fields().members)
    if (value.kind == Tree::Kind::kMap)
      return rope.error(name, "a number or a word: rotary settings for each type of layer are not supported");

  const std::string_view type_field = rope.has("rope_type") ? "rope_type" : "type";
  PLIMSOLL_ASSIGN(const std::string type, rope.string(type_field, "default"));
  if (!rope.has(type_field) && rope.has("factor"))
    return rope.error("rope_type", "the kind of scaling that factor belongs to, such as linear");
  if (type != "default" && type != "linear" && type != "llama3")
    return rope.error(type_field, "one of default, linear, llama3: other rope types are not supported");
  PLIMSOLL_ASSIGN(const RopeConfig result, read_rope(rope, type, theta));
  if (config.has("rope_theta") && result.theta != theta)
    return config.error("rope_theta", fmt::format("{}, as in rope_parameters", result.theta));
  if (new_spelling && old_spelling) {
    PLIMSOLL_ASSIGN(const std::string other,
                    old_spelling->string(old_spelling->has("rope_type") ? "rope_type" : "type", "default"));
    PLIMSOLL_ASSIGN(const double factor, old_spelling->number("factor", kRopeFactorRange, result.factor));
    if (other != type || factor != result.factor)
      return config.error("rope_scaling", "the same as rope_parameters; they contradict");
  }
  return result;
}

/// Fields that change the mathematics and have one supported value.
Status refuse_unsupported(const ConfigJson& config, bool is_mistral) {
  PLIMSOLL_TRY(config.require("hidden_act", Tree::of(std::string("silu")),
                              "only the silu activation is supported here"));
  PLIMSOLL_TRY(config.require("attention_dropout", Tree::of(int64_t{0}),
                              "dropout is not supported: set model.overrides.attention_dropout=0"));
  PLIMSOLL_TRY(
      config.require("pretraining_tp", Tree::of(int64_t{1}),
                     "set model.overrides.pretraining_tp=1: it is the same model in exact arithmetic"));
  for (const std::string_view field : {"rope_interleaved", "use_sliding_window", "is_encoder_decoder",
                                       "add_cross_attention", "qk_layernorm", "use_qk_norm"})
    PLIMSOLL_TRY(config.require(field, Tree::of(false), "what it changes is not supported"));
  if (const Tree* types = config.fields().find("layer_types"); types != nullptr && !types->is_null()) {
    if (types->kind != Tree::Kind::kList) return config.error("layer_types", "a list of attention types");
    for (const Tree& type : types->items)
      if (type.text != (is_mistral && config.has("sliding_window") ? "sliding_attention" : "full_attention"))
        return config.error("layer_types", "the same attention in every layer");
  }
  PLIMSOLL_TRY(config.require_absent({"quantization_config", "clip_qkv", "attn_logit_softcapping",
                                      "final_logit_softcapping", "logits_scaling", "residual_multiplier",
                                      "embedding_multiplier", "attention_multiplier", "no_rope_layers",
                                      "num_local_experts", "num_experts", "attention_chunk_size"}));
  if (!is_mistral) PLIMSOLL_TRY(config.require_absent({"sliding_window"}));
  return Ok{};
}

/// Widths, heads and depth, and what must hold between them.
Status read_sizes(const ConfigJson& config, LlamaConfig& c) {
  PLIMSOLL_ASSIGN(c.vocab_size, config.integer("vocab_size", kVocabRange));
  PLIMSOLL_ASSIGN(c.hidden_size, config.integer("hidden_size", kWidthRange));
  PLIMSOLL_ASSIGN(c.intermediate_size, config.integer("intermediate_size", kInnerRange));
  PLIMSOLL_ASSIGN(c.num_hidden_layers, config.integer("num_hidden_layers", kLayersRange));
  PLIMSOLL_ASSIGN(c.num_attention_heads, config.integer("num_attention_heads", {1, 1 << 16}));
  PLIMSOLL_ASSIGN(c.num_key_value_heads,
                  config.integer("num_key_value_heads", {1, 1 << 16}, c.num_attention_heads));
  PLIMSOLL_ASSIGN(c.max_position_embeddings,
                  config.integer("max_position_embeddings", kPositionsRange, 2048));
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    return config.error("num_key_value_heads",
                        fmt::format("a divisor of num_attention_heads ({})", c.num_attention_heads));
  if (!config.has("head_dim") && c.hidden_size % c.num_attention_heads != 0)
    return config.error(
        "num_attention_heads",
        fmt::format("a divisor of hidden_size ({}) where head_dim is not given", c.hidden_size));
  PLIMSOLL_ASSIGN(c.head_dim,
                  config.integer("head_dim", {2, 1 << 14}, c.hidden_size / c.num_attention_heads));
  if (c.head_dim % 2 != 0 || c.head_dim < 2)
    return config.error(
        "head_dim",
        fmt::format("an even number of at least 2 (it is {}): rotation works on pairs", c.head_dim));
  if (c.num_attention_heads * c.head_dim > kInnerRange.most)
    return config.error("num_attention_heads",
                        fmt::format("heads * head_dim of at most {}", kInnerRange.most));
  return Ok{};
}

}  // namespace

std::vector<float> RopeConfig::inverse_frequencies(int64_t head_dim) const {
  std::vector<float> frequencies(static_cast<size_t>(head_dim / 2));
  const auto scale = static_cast<float>(factor);
  const auto low = static_cast<float>(low_freq_factor);
  const auto high = static_cast<float>(high_freq_factor);
  const auto old_length = static_cast<float>(original_max_position_embeddings);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    const float frequency = 1.0F / static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    frequencies[i] = kind == Kind::kLinear ? frequency / scale : frequency;
    if (kind != Kind::kLlama3) continue;
    const float wavelength = 2.0F * std::numbers::pi_v<float> / frequency;
    if (wavelength > old_length / low) {
      frequencies[i] = frequency / scale;
    } else if (!(wavelength < old_length / high)) {
      const float smooth = (old_length / wavelength - low) / (high - low);
      frequencies[i] = (1.0F - smooth) * frequency / scale + smooth * frequency;
    }
  }
  return frequencies;
}

int64_t LlamaConfig::num_parameters() const {
  const int64_t query = num_attention_heads * head_dim;
  const int64_t key = num_key_value_heads * head_dim;
  int64_t layer = hidden_size * (2 * query + 2 * key) + 3 * hidden_size * intermediate_size + 2 * hidden_size;
  if (attention_bias) layer += query + 2 * key + hidden_size;
  if (mlp_bias) layer += 2 * intermediate_size + hidden_size;
  return vocab_size * hidden_size * (tie_word_embeddings ? 1 : 2) + num_hidden_layers * layer + hidden_size;
}

Result<LlamaConfig> parse_llama_config(const ConfigJson& config) {
  LlamaConfig c;
  PLIMSOLL_ASSIGN(c.model_type, config.model_type());
  const bool is_mistral = c.model_type == "mistral";
  if (!is_mistral && c.model_type != "llama") return config.error("model_type", "llama or mistral");
  PLIMSOLL_TRY(read_sizes(config, c));
  PLIMSOLL_ASSIGN(c.rms_norm_eps, config.number("rms_norm_eps", {0.0, 1.0}, 1e-6));
  PLIMSOLL_ASSIGN(c.initializer_range, config.number("initializer_range", {0.0, 100.0}, 0.02));
  PLIMSOLL_ASSIGN(c.tie_word_embeddings, config.boolean("tie_word_embeddings", false));
  PLIMSOLL_ASSIGN(c.attention_bias, config.boolean("attention_bias", false));
  PLIMSOLL_ASSIGN(c.mlp_bias, config.boolean("mlp_bias", false));
  if (is_mistral) {
    PLIMSOLL_ASSIGN(c.sliding_window, config.optional_integer("sliding_window", kPositionsRange));
    if (!config.has("num_key_value_heads"))
      return config.error("num_key_value_heads", "the number of key and value heads");
    if (c.attention_bias) return config.error("attention_bias", "false: Mistral has no biases");
    if (c.mlp_bias) return config.error("mlp_bias", "false: Mistral has no biases");
  }
  PLIMSOLL_TRY(refuse_unsupported(config, is_mistral));
  PLIMSOLL_ASSIGN(c.rope, parse_rope(config));
  PLIMSOLL_ASSIGN(c.bos_token_id, config.optional_integer("bos_token_id", {0, kVocabRange.most}));
  // Some families write -1 for "no padding".
  PLIMSOLL_ASSIGN(c.pad_token_id, config.optional_integer("pad_token_id", {-1, kVocabRange.most}));
  if (c.pad_token_id == -1) c.pad_token_id.reset();
  PLIMSOLL_ASSIGN(c.eos_token_ids, config.integers("eos_token_id", {0, kVocabRange.most}));
  config.ignore({"torch_dtype", "dtype", "use_cache", "transformers_version", "_name_or_path", "layer_types",
                 "is_llama_config", "name_or_path"});
  c.unknown_fields = config.unread_fields();
  return c;
}

}  // namespace plimsoll
