#include "models/decoder_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/label_fields.h"

namespace plimsoll::models {
namespace {

// Bounds that keep every product of two sizes, and the parameters of all layers, far inside 64 bits.
constexpr io::IntegerRange kVocabRange = {1, int64_t{1} << 24};
constexpr io::IntegerRange kWidthRange = {1, int64_t{1} << 20};
constexpr io::IntegerRange kInnerRange = {1, int64_t{1} << 22};
constexpr io::IntegerRange kLayersRange = {1, 512};
constexpr io::IntegerRange kHeadsRange = {1, 1 << 16};
constexpr double kLargestDropout = 0.999;

Status read_kv_heads(const io::ConfigJson& config, const DecoderDefaults& defaults, DecoderConfig& c) {
  constexpr std::string_view kField = "num_key_value_heads";
  if (!defaults.kv_heads_are_heads && config.fields().find(kField) == nullptr)
    return config.error(kField, "the number of key and value heads");
  PLIMSOLL_ASSIGN(c.num_key_value_heads, config.integer(kField, kHeadsRange, c.num_attention_heads));
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    return config.error(kField, fmt::format("a divisor of num_attention_heads ({})", c.num_attention_heads));
  return Ok{};
}

Status read_head_dim(const io::ConfigJson& config, const DecoderDefaults& defaults, DecoderConfig& c) {
  const bool derived = !config.has("head_dim") && defaults.head_dim == 0;
  if (derived && c.hidden_size % c.num_attention_heads != 0)
    return config.error(
        "num_attention_heads",
        fmt::format("a divisor of hidden_size ({}) where head_dim is not given", c.hidden_size));
  const int64_t otherwise = derived ? c.hidden_size / c.num_attention_heads : defaults.head_dim;
  PLIMSOLL_ASSIGN(c.head_dim, config.integer("head_dim", {2, 1 << 14}, otherwise));
  if (c.head_dim % 2 != 0 || c.head_dim < 2)
    return config.error(
        "head_dim",
        fmt::format("an even number of at least 2 (it is {}): rotation works on pairs", c.head_dim));
  if (c.num_attention_heads * c.head_dim > kInnerRange.most)
    return config.error("num_attention_heads",
                        fmt::format("heads * head_dim of at most {}", kInnerRange.most));
  return Ok{};
}

/// Widths, heads and depth, and what must hold between them.
Status read_sizes(const io::ConfigJson& config, const DecoderDefaults& defaults, DecoderConfig& c) {
  PLIMSOLL_ASSIGN(c.vocab_size, config.integer("vocab_size", kVocabRange));
  PLIMSOLL_ASSIGN(c.hidden_size, config.integer("hidden_size", kWidthRange));
  PLIMSOLL_ASSIGN(c.intermediate_size, config.integer("intermediate_size", kInnerRange));
  PLIMSOLL_ASSIGN(c.num_hidden_layers, config.integer("num_hidden_layers", kLayersRange));
  PLIMSOLL_ASSIGN(c.num_attention_heads, config.integer("num_attention_heads", kHeadsRange));
  PLIMSOLL_ASSIGN(c.max_position_embeddings, config.integer("max_position_embeddings", kPositionsRange,
                                                            defaults.max_position_embeddings));
  PLIMSOLL_TRY(read_kv_heads(config, defaults, c));
  return read_head_dim(config, defaults, c);
}

Status read_special_tokens(const io::ConfigJson& config, DecoderConfig& c) {
  PLIMSOLL_ASSIGN(c.bos_token_id, config.optional_integer("bos_token_id", {0, kVocabRange.most}));
  PLIMSOLL_ASSIGN(c.eos_token_ids, config.integers("eos_token_id", {0, kVocabRange.most}));
  PLIMSOLL_ASSIGN(c.pad_token_id, config.optional_integer("pad_token_id", {-c.vocab_size, c.vocab_size - 1}));
  if (c.pad_token_id && *c.pad_token_id < 0) *c.pad_token_id += c.vocab_size;
  return Ok{};
}

/// Fields that change the mathematics and have one supported value in all these families.
Status refuse_unsupported(const io::ConfigJson& config) {
  const io::Tree* act = config.fields().find("hidden_act");  // two names of one function
  if (act == nullptr || act->text != "swish")
    PLIMSOLL_TRY(config.require("hidden_act", io::Tree::of(std::string("silu")),
                                "only the silu activation is supported here"));
  config.ignore({"hidden_act"});
  for (const std::string_view field :
       {"rope_interleaved", "is_encoder_decoder", "add_cross_attention", "qk_layernorm", "use_qk_norm",
        "mlp_bias", "attention_bias", "use_sliding_window"}) {
    const bool read_by_the_family = std::ranges::count(config.known_fields(), field) > 0;
    if (!read_by_the_family)
      PLIMSOLL_TRY(config.require(field, io::Tree::of(false), "its effect is not supported"));
  }
  if (std::ranges::count(config.known_fields(), "no_rope_layers") == 0)
    PLIMSOLL_TRY(config.require_absent({"no_rope_layers"}));
  return config.require_absent({"clip_qkv", "attn_logit_softcapping", "final_logit_softcapping",
                                "logits_scaling", "residual_multiplier", "embedding_multiplier",
                                "attention_multiplier", "num_local_experts", "num_experts",
                                "attention_chunk_size"});
}

}  // namespace

int64_t DecoderConfig::num_parameters() const {
  const int64_t query = num_attention_heads * head_dim;
  const int64_t key = num_key_value_heads * head_dim;
  int64_t layer = hidden_size * (2 * query + 2 * key) + 3 * hidden_size * intermediate_size + 2 * hidden_size;
  if (qkv_bias) layer += query + 2 * key;
  if (o_bias) layer += hidden_size;
  if (mlp_bias) layer += 2 * intermediate_size + hidden_size;
  if (qk_norm) layer += 2 * head_dim;
  const int64_t head = num_labels > 0 ? num_labels : tie_word_embeddings ? 0 : vocab_size;
  return (vocab_size + head) * hidden_size + num_hidden_layers * layer + hidden_size;
}

Result<DecoderConfig> read_decoder_config(const io::ConfigJson& config, std::string_view model_type,
                                          const DecoderDefaults& defaults) {
  DecoderConfig c;
  PLIMSOLL_ASSIGN(c.model_type, config.model_type());
  if (c.model_type != model_type) return config.error("model_type", model_type);
  PLIMSOLL_TRY(read_sizes(config, defaults, c));
  PLIMSOLL_ASSIGN(c.rms_norm_eps, config.number("rms_norm_eps", {0.0, 1.0}, 1e-6));
  PLIMSOLL_ASSIGN(c.initializer_range, config.number("initializer_range", {0.0, 100.0}, 0.02));
  PLIMSOLL_ASSIGN(c.tie_word_embeddings, config.boolean("tie_word_embeddings", defaults.tied));
  PLIMSOLL_ASSIGN(c.attention_dropout, config.number("attention_dropout", {0.0, kLargestDropout}, 0.0));
  PLIMSOLL_ASSIGN(ParsedRope rope, parse_rope(config, c.max_position_embeddings, defaults.rope_theta));
  c.rope = rope.rope;
  c.unknown_fields = std::move(rope.unknown_fields);
  PLIMSOLL_TRY(read_special_tokens(config, c));
  c.windows.assign(static_cast<size_t>(c.num_hidden_layers), 0);
  c.rope_layers.assign(static_cast<size_t>(c.num_hidden_layers), true);
  return c;
}

Status read_layer_windows(const io::ConfigJson& config, DecoderConfig& c) {
  PLIMSOLL_ASSIGN(const bool use, config.boolean("use_sliding_window", false));
  const bool left_out = config.fields().find("sliding_window") == nullptr;
  PLIMSOLL_ASSIGN(const auto given, config.optional_integer("sliding_window", kPositionsRange));
  constexpr int64_t kDefaultWindow = 4096, kDefaultFullLayers = 28;  // transformers' for Qwen2 and Qwen3
  const int64_t window = !use ? 0 : left_out ? kDefaultWindow : given.value_or(0);
  PLIMSOLL_ASSIGN(const int64_t full_layers,
                  config.integer("max_window_layers", {0, int64_t{1} << 20}, kDefaultFullLayers));
  for (int64_t i = full_layers; i < c.num_hidden_layers; ++i) c.windows[static_cast<size_t>(i)] = window;
  return read_layer_types(config, window, "use_sliding_window and max_window_layers", c.windows);
}

Status read_layer_types(const io::ConfigJson& config, int64_t window, std::string_view otherwise,
                        std::vector<int64_t>& windows) {
  config.ignore({"layer_types"});
  if (!config.has("layer_types")) return Ok{};
  const io::Tree* types = config.fields().find("layer_types");
  if (types->kind != io::Tree::Kind::kList || types->items.size() != windows.size())
    return config.error(
        "layer_types", fmt::format("a list of {} attention types", windows.size()),
        fmt::format(
            "correct layer_types, or set model.overrides.layer_types=null: then {} select the sliding layers",
            otherwise));
  for (size_t i = 0; i < windows.size(); ++i) {
    const bool slides = types->items[i].text == "sliding_attention";
    if (!slides && types->items[i].text != "full_attention")
      return config.error("layer_types", "full_attention or sliding_attention for each layer");
    if (slides && window == 0)
      return config.error("layer_types",
                          "no sliding_attention without use_sliding_window and sliding_window");
    windows[i] = slides ? window : 0;
  }
  return Ok{};
}

Status finish_decoder_config(const io::ConfigJson& config, DecoderConfig& c) {
  PLIMSOLL_TRY(refuse_unsupported(config));
  PLIMSOLL_ASSIGN(c.num_labels, io::num_classifier_labels(config));
  config.ignore({"torch_dtype", "dtype", "use_cache", "transformers_version", "_name_or_path",
                 "is_llama_config", "name_or_path", "pretraining_tp", "quantization_config"});
  for (std::string& field : config.unread_fields()) c.unknown_fields.push_back(std::move(field));
  return Ok{};
}

}  // namespace plimsoll::models
