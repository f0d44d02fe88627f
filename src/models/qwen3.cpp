// Qwen3: queries and keys are normalised head by head before the rotation; a head_dim of its own; some layers
// may slide. Yang et al. 2025, arXiv:2505.09388.
#include "models/families.h"

namespace plimsoll::models {
namespace {

Result<DecoderConfig> parse_qwen3_config(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(DecoderConfig c,
                  read_decoder_config(config, "qwen3", {.max_position_embeddings = 32768, .head_dim = 128}));
  PLIMSOLL_ASSIGN(c.qkv_bias, config.boolean("attention_bias", false));
  c.o_bias = c.qkv_bias;
  c.qk_norm = true;
  PLIMSOLL_TRY(read_layer_windows(config, c));
  PLIMSOLL_TRY(finish_decoder_config(config, c));
  return c;
}

constexpr Preset kQwen3Presets[] = {
    {"qwen3-0.6b", "Qwen/Qwen3-0.6B", "Apache 2.0", 596'049'920,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072,
      "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": true,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    {"qwen3-1.7b", "Qwen/Qwen3-1.7B", "Apache 2.0", 1'720'574'976,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144,
      "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": true,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    {"qwen3-4b", "Qwen/Qwen3-4B", "Apache 2.0", 4'022'468'096,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 2560, "intermediate_size": 9728,
      "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": true,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    {"qwen3-8b", "Qwen/Qwen3-8B", "Apache 2.0", 8'190'735'360,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 12288,
      "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": false,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    {"qwen3-14b", "Qwen/Qwen3-14B", "Apache 2.0", 14'768'307'200,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 5120, "intermediate_size": 17408,
      "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": false,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    {"qwen3-32b", "Qwen/Qwen3-32B", "Apache 2.0", 32'762'123'264,
     R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 5120, "intermediate_size": 25600,
      "num_hidden_layers": 64, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": false,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
};

constexpr std::string_view kQwen3LoraTargets[] = {"q_proj", "v_proj"};

constexpr Family kQwen3Family{
    .model_type = "qwen3",
    .class_name = "Qwen3",
    .parse = parse_qwen3_config,
    .lora_targets = kQwen3LoraTargets,
    .sample = R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 60,
    "intermediate_size": 77, "num_hidden_layers": 3, "num_attention_heads": 3,
    "num_key_value_heads": 1, "vocab_size": 211, "max_position_embeddings": 512,
    "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "initializer_range": 0.1,
    "tie_word_embeddings": false, "attention_dropout": 0.0, "use_sliding_window": false,
    "sliding_window": 64, "max_window_layers": 2, "head_dim": 26, "attention_bias": false})",
    .presets = kQwen3Presets};

}  // namespace

const Family& qwen3_family() { return kQwen3Family; }

}  // namespace plimsoll::models
