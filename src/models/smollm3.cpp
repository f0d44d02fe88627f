// SmolLM3: Llama whose head is tied unless it says otherwise, and of whose layers some have no positions
// (NoPE). Bakouch et al. 2025, huggingface.co/blog/smollm3; such layers: Yang et al. 2025, arXiv:2501.18795.
#include <fmt/format.h>

#include "models/families.h"

namespace plimsoll::models {
namespace {

/// no_rope_layers says 1 for a layer that rotates; where it is left out, each no_rope_layer_interval-th does
/// not.
Status read_rope_layers(const io::ConfigJson& config, DecoderConfig& c) {
  constexpr std::string_view kField = "no_rope_layers";
  constexpr int64_t kDefaultInterval = 4;
  PLIMSOLL_ASSIGN(const int64_t interval,
                  config.integer("no_rope_layer_interval", {1, int64_t{1} << 20}, kDefaultInterval));
  PLIMSOLL_ASSIGN(const auto given, config.integers(kField, {0, 1}));
  if (config.has(kField) && given.size() < c.rope_layers.size())
    return config.error(kField, fmt::format("a list of {} numbers, 1 for a layer with rotary positions, 0 "
                                            "for one without",
                                            c.num_hidden_layers));
  for (size_t i = 0; i < c.rope_layers.size(); ++i)
    c.rope_layers[i] = config.has(kField) ? given[i] != 0 : (static_cast<int64_t>(i) + 1) % interval != 0;
  return Ok{};
}

/// Layers without positions slide, unless layer_types says which.
Status read_windows(const io::ConfigJson& config, DecoderConfig& c) {
  PLIMSOLL_ASSIGN(const bool use, config.boolean("use_sliding_window", false));
  PLIMSOLL_ASSIGN(const auto given, config.optional_integer("sliding_window", {1, int64_t{1} << 28}));
  const int64_t window = use ? given.value_or(0) : 0;
  for (size_t i = 0; i < c.windows.size(); ++i) c.windows[i] = c.rope_layers[i] ? 0 : window;
  config.ignore({"max_window_layers"});  // in the published files, read by nobody
  return read_layer_types(config, window, "no_rope_layers", c.windows);
}

Result<DecoderConfig> parse_smollm3_config(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(DecoderConfig c,
                  read_decoder_config(config, "smollm3",
                                      {.max_position_embeddings = 32768, .rope_theta = 2e6, .tied = true}));
  // The class's own stands for a vocabulary of 128,256: a smaller one has to say.
  if (config.fields().find("pad_token_id") == nullptr)
    return config.error("pad_token_id", "a token or null; left out it means 128004 in transformers");
  PLIMSOLL_ASSIGN(c.qkv_bias, config.boolean("attention_bias", false));
  c.o_bias = c.qkv_bias;
  PLIMSOLL_ASSIGN(c.mlp_bias, config.boolean("mlp_bias", false));
  PLIMSOLL_TRY(read_rope_layers(config, c));
  PLIMSOLL_TRY(read_windows(config, c));
  PLIMSOLL_TRY(finish_decoder_config(config, c));
  return c;
}

constexpr Preset kSmolLM3Presets[] = {
    {"smollm3-3b", "HuggingFaceTB/SmolLM3-3B", "Apache 2.0", 3'075'098'624,
     R"({"model_type": "smollm3", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008,
      "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4,
      "max_position_embeddings": 65536, "no_rope_layer_interval": 4, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 5000000.0, "tie_word_embeddings": true, "bos_token_id": 128000,
      "eos_token_id": 128012, "pad_token_id": 128004})"},
};

constexpr Family kSmolLM3Family{
    .model_type = "smollm3",
    .class_name = "SmolLM3",
    .parse = parse_smollm3_config,
    .sample = R"({"architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "hidden_size": 60,
    "intermediate_size": 77, "num_hidden_layers": 3, "num_attention_heads": 3,
    "num_key_value_heads": 1, "vocab_size": 211, "max_position_embeddings": 512,
    "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "initializer_range": 0.1,
    "tie_word_embeddings": false, "attention_dropout": 0.0, "attention_bias": false,
    "mlp_bias": false, "no_rope_layer_interval": 2, "use_sliding_window": false,
    "sliding_window": null, "pad_token_id": null, "bos_token_id": 1, "eos_token_id": 2})",
    .presets = kSmolLM3Presets};

}  // namespace

const Family& smollm3_family() { return kSmolLM3Family; }

}  // namespace plimsoll::models
