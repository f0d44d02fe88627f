// Qwen2 and Qwen2.5: Llama with biases on q, k and v always and nowhere else; some layers may slide.
// Yang et al. 2024, arXiv:2407.10671.
#include "models/families.h"

namespace plimsoll::models {
namespace {

Result<DecoderConfig> parse_qwen2_config(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(DecoderConfig c, read_decoder_config(config, "qwen2", {.max_position_embeddings = 32768}));
  c.qkv_bias = true;
  PLIMSOLL_TRY(read_layer_windows(config, c));
  PLIMSOLL_TRY(finish_decoder_config(config, c));
  return c;
}

constexpr Preset kQwen2Presets[] = {
    {"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B", "Apache 2.0", 494'032'768,
     R"({"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864,
      "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
      "max_position_embeddings": 32768, "use_sliding_window": false, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000.0, "tie_word_embeddings": true, "bos_token_id": 151643, "eos_token_id": 151643})"},
    {"qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B", "Apache 2.0", 1'543'714'304,
     R"({"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 1536, "intermediate_size": 8960,
      "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
      "max_position_embeddings": 131072, "use_sliding_window": false, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000.0, "tie_word_embeddings": true, "bos_token_id": 151643, "eos_token_id": 151643})"},
    {"qwen2.5-3b", "Qwen/Qwen2.5-3B", "Qwen Research", 3'085'938'688,
     R"({"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 11008,
      "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2,
      "max_position_embeddings": 32768, "use_sliding_window": false, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000.0, "tie_word_embeddings": true, "bos_token_id": 151643, "eos_token_id": 151643})"},
    {"qwen2.5-7b", "Qwen/Qwen2.5-7B", "Apache 2.0", 7'615'616'512,
     R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
      "max_position_embeddings": 131072, "use_sliding_window": false, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 151643,
      "eos_token_id": 151643})"},
    {"qwen2.5-14b", "Qwen/Qwen2.5-14B", "Apache 2.0", 14'770'033'664,
     R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 5120, "intermediate_size": 13824,
      "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8,
      "max_position_embeddings": 131072, "use_sliding_window": false, "rms_norm_eps": 1e-05,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 151643,
      "eos_token_id": 151643})"},
    {"qwen2.5-32b", "Qwen/Qwen2.5-32B", "Apache 2.0", 32'763'876'352,
     R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 5120, "intermediate_size": 27648,
      "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads": 8,
      "max_position_embeddings": 131072, "use_sliding_window": false, "rms_norm_eps": 1e-05,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 151643,
      "eos_token_id": 151643})"},
    {"qwen2.5-72b", "Qwen/Qwen2.5-72B", "Qwen", 72'706'203'648,
     R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
      "max_position_embeddings": 131072, "use_sliding_window": false, "rms_norm_eps": 1e-05,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 151643,
      "eos_token_id": 151643})"},
};

constexpr std::string_view kQwen2LoraTargets[] = {"q_proj", "v_proj"};

constexpr Family kQwen2Family{
    .model_type = "qwen2",
    .class_name = "Qwen2",
    .parse = parse_qwen2_config,
    .lora_targets = kQwen2LoraTargets,
    .sample = R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 60,
    "intermediate_size": 77, "num_hidden_layers": 3, "num_attention_heads": 3,
    "num_key_value_heads": 1, "vocab_size": 211, "max_position_embeddings": 512,
    "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "initializer_range": 0.1,
    "tie_word_embeddings": false, "attention_dropout": 0.0, "use_sliding_window": false,
    "sliding_window": 64, "max_window_layers": 2})",
    .presets = kQwen2Presets};

}  // namespace

const Family& qwen2_family() { return kQwen2Family; }

}  // namespace plimsoll::models
