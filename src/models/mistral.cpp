// Mistral: Llama without biases, every layer with the same sliding window, or none where sliding_window is
// null. Jiang et al. 2023, arXiv:2310.06825.
#include <algorithm>

#include "models/families.h"

namespace plimsoll::models {
namespace {

Result<DecoderConfig> parse_mistral_config(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(DecoderConfig c,
                  read_decoder_config(config, "mistral", {.max_position_embeddings = 131072}));
  constexpr int64_t kDefaultWindow = 4096;  // transformers', where the field is left out
  const bool left_out = config.fields().find("sliding_window") == nullptr;
  PLIMSOLL_ASSIGN(const auto given, config.optional_integer("sliding_window", {1, int64_t{1} << 28}));
  const int64_t window = left_out ? kDefaultWindow : given.value_or(0);
  std::ranges::fill(c.windows, window);
  if (const io::Tree* types = config.fields().find("layer_types"); types != nullptr && !types->is_null()) {
    if (types->kind != io::Tree::Kind::kList) return config.error("layer_types", "a list of attention types");
    for (const io::Tree& type : types->items)
      if (type.text != (window > 0 ? "sliding_attention" : "full_attention"))
        return config.error("layer_types", "the same attention in every layer, as sliding_window says");
  }
  config.ignore({"layer_types"});
  PLIMSOLL_TRY(finish_decoder_config(config, c));
  return c;
}

constexpr Preset kMistralPresets[] = {
    {"mistral-7b-v0.1", "mistralai/Mistral-7B-v0.1", "Apache 2.0", 7'241'732'096,
     R"({"model_type": "mistral", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
      "max_position_embeddings": 32768, "sliding_window": 4096, "rms_norm_eps": 1e-05,
      "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    {"mistral-7b-v0.3", "mistralai/Mistral-7B-v0.3", "Apache 2.0", 7'248'023'552,
     R"({"model_type": "mistral", "vocab_size": 32768, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
      "max_position_embeddings": 32768, "sliding_window": null, "rms_norm_eps": 1e-05,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
};

constexpr std::string_view kMistralLoraTargets[] = {"q_proj", "v_proj"};

constexpr Family kMistralFamily{
    .model_type = "mistral",
    .class_name = "Mistral",
    .parse = parse_mistral_config,
    .lora_targets = kMistralLoraTargets,
    .sample = R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 60,
    "intermediate_size": 77, "num_hidden_layers": 2, "num_attention_heads": 3,
    "num_key_value_heads": 1, "head_dim": 20, "vocab_size": 211, "max_position_embeddings": 512,
    "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "initializer_range": 0.1,
    "tie_word_embeddings": false, "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
    "sliding_window": 11})",
    .presets = kMistralPresets};

}  // namespace

const Family& mistral_family() { return kMistralFamily; }

}  // namespace plimsoll::models
