// The presets: sizes from the families' published config.json files. GPT-2's dropout stands at 0 here,
// because pretraining runs leave it out and nothing below draws it.
#include "models/presets.h"

#include <array>

#include "base/check.h"
#include "io/suggest.h"

namespace plimsoll {
namespace {

struct Preset {
  std::string_view name;
  std::string_view config;
};

constexpr std::array kPresets = {
    Preset{"llama-2-7b",
           R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    Preset{"llama-2-13b",
           R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 5120, "intermediate_size": 13824,
      "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 40, "max_position_embeddings": 4096,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    Preset{"llama-2-70b",
           R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 8192, "intermediate_size": 28672,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 4096,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    Preset{"llama-3-8b",
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"llama-3.1-8b",
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"llama-3.1-70b",
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"llama-3.2-1b",
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
      "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": true,
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"llama-3.2-3b",
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 3072, "intermediate_size": 8192,
      "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": true,
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"smollm-135m",
           R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
      "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 2048,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": true, "initializer_range": 0.02,
      "bos_token_id": 0, "eos_token_id": 0})"},
    Preset{"smollm2-135m",
           R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
      "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 100000, "tie_word_embeddings": true,
      "initializer_range": 0.041666666666666664, "bos_token_id": 0, "eos_token_id": 0})"},
    Preset{"smollm2-360m",
           R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 960, "intermediate_size": 2560,
      "num_hidden_layers": 32, "num_attention_heads": 15, "num_key_value_heads": 5, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 100000, "tie_word_embeddings": true, "initializer_range": 0.02,
      "bos_token_id": 0, "eos_token_id": 0})"},
    Preset{"smollm2-1.7b",
           R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 2048, "intermediate_size": 8192,
      "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 130000, "tie_word_embeddings": true, "initializer_range": 0.02,
      "bos_token_id": 0, "eos_token_id": 0})"},
    Preset{"tinyllama-1.1b",
           R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632,
      "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 2048,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    Preset{"gpt2", R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
    Preset{"gpt2-medium",
           R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 1024, "n_layer": 24, "n_head": 16,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
    Preset{"gpt2-large",
           R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 1280, "n_layer": 36, "n_head": 20,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
    Preset{"gpt2-xl",
           R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 1600, "n_layer": 48, "n_head": 25,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
};

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Result<ConfigJson> preset_config(std::string_view name) {
  for (const Preset& preset : kPresets)
    if (preset.name == name) return parse_config_json(preset.config, "preset " + std::string(name));
  return Error{ErrorCode::kInvalidArgument, "there is no preset '" + std::string(name.substr(0, 60)) + "'",
               "model.preset", "the nearest is " + nearest_name(name, preset_names())};
}

}  // namespace plimsoll
