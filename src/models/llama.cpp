// Llama: the decoder as it is, with biases where asked for. SmolLM2 and TinyLlama are Llamas too.
// Touvron et al. 2023, arXiv:2302.13971; Llama 3: Dubey et al. 2024, arXiv:2407.21783.
#include "models/families.h"

namespace plimsoll::models {
namespace {

Result<DecoderConfig> parse_llama_config(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(DecoderConfig c, read_decoder_config(config, "llama", {.kv_heads_are_heads = true}));
  PLIMSOLL_ASSIGN(c.qkv_bias, config.boolean("attention_bias", false));
  c.o_bias = c.qkv_bias;
  PLIMSOLL_ASSIGN(c.mlp_bias, config.boolean("mlp_bias", false));
  PLIMSOLL_TRY(config.require_absent({"sliding_window"}));
  if (const io::Tree* types = config.fields().find("layer_types"); types != nullptr && !types->is_null()) {
    if (types->kind != io::Tree::Kind::kList) return config.error("layer_types", "a list of attention types");
    for (const io::Tree& type : types->items)
      if (type.text != "full_attention") return config.error("layer_types", "full_attention in every layer");
  }
  config.ignore({"layer_types"});
  PLIMSOLL_TRY(finish_decoder_config(config, c));
  return c;
}

constexpr Preset kLlamaPresets[] = {
    {"llama-2-7b", "meta-llama/Llama-2-7b-hf", "Llama 2 Community", 6'738'415'616,
     R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    {"llama-2-13b", "meta-llama/Llama-2-13b-hf", "Llama 2 Community", 13'015'864'320,
     R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 5120, "intermediate_size": 13824,
      "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 40, "max_position_embeddings": 4096,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    {"llama-2-70b", "meta-llama/Llama-2-70b-hf", "Llama 2 Community", 68'976'648'192,
     R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 8192, "intermediate_size": 28672,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 4096,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    {"llama-3-8b", "meta-llama/Meta-Llama-3-8B", "Llama 3 Community", 8'030'261'248,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    {"llama-3-70b", "meta-llama/Meta-Llama-3-70B", "Llama 3 Community", 70'553'706'496,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
      "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
      "tie_word_embeddings": false, "bos_token_id": 128000, "eos_token_id": 128001})"},
    {"llama-3.1-8b", "meta-llama/Llama-3.1-8B", "Llama 3.1 Community", 8'030'261'248,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    {"llama-3.1-70b", "meta-llama/Llama-3.1-70B", "Llama 3.1 Community", 70'553'706'496,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    {"llama-3.1-405b", "meta-llama/Llama-3.1-405B", "Llama 3.1 Community", 405'853'388'800,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 16384, "intermediate_size": 53248,
      "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
      "tie_word_embeddings": false,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192}, "bos_token_id": 128000, "eos_token_id": 128001})"},
    {"llama-3.2-1b", "meta-llama/Llama-3.2-1B", "Llama 3.2 Community", 1'235'814'400,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
      "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": true,
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    {"llama-3.2-3b", "meta-llama/Llama-3.2-3B", "Llama 3.2 Community", 3'212'749'824,
     R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 3072, "intermediate_size": 8192,
      "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": true,
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    {"smollm-135m", "HuggingFaceTB/SmolLM-135M", "Apache 2.0", 134'515'008,
     R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
      "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 2048,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": true, "initializer_range": 0.02,
      "bos_token_id": 0, "eos_token_id": 0})"},
    {"smollm2-135m", "HuggingFaceTB/SmolLM2-135M", "Apache 2.0", 134'515'008,
     R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
      "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 100000, "tie_word_embeddings": true,
      "initializer_range": 0.041666666666666664, "bos_token_id": 0, "eos_token_id": 0})"},
    {"smollm2-360m", "HuggingFaceTB/SmolLM2-360M", "Apache 2.0", 361'821'120,
     R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 960, "intermediate_size": 2560,
      "num_hidden_layers": 32, "num_attention_heads": 15, "num_key_value_heads": 5, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 100000, "tie_word_embeddings": true, "initializer_range": 0.02,
      "bos_token_id": 0, "eos_token_id": 0})"},
    {"smollm2-1.7b", "HuggingFaceTB/SmolLM2-1.7B", "Apache 2.0", 1'711'376'384,
     R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 2048, "intermediate_size": 8192,
      "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 130000, "tie_word_embeddings": true, "initializer_range": 0.02,
      "bos_token_id": 0, "eos_token_id": 0})"},
    {"tinyllama-1.1b", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "Apache 2.0", 1'100'048'384,
     R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632,
      "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 2048,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
};

constexpr std::string_view kLlamaLoraTargets[] = {"q_proj", "v_proj"};

constexpr Family kLlamaFamily{
    .model_type = "llama",
    .class_name = "Llama",
    .parse = parse_llama_config,
    .lora_targets = kLlamaLoraTargets,
    .sample = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 60,
    "intermediate_size": 77, "num_hidden_layers": 2, "num_attention_heads": 3,
    "num_key_value_heads": 3, "head_dim": 20, "vocab_size": 211, "max_position_embeddings": 512,
    "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "initializer_range": 0.1,
    "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2})",
    .presets = kLlamaPresets};

}  // namespace

const Family& llama_family() { return kLlamaFamily; }

}  // namespace plimsoll::models
