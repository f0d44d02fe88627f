// The presets: sizes from the families' published config.json files. GPT-2's dropout stands at 0 here,
// because pretraining runs leave it out.
#include "models/presets.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"
#include "io/suggest.h"

namespace plimsoll::models {
namespace {

struct Preset {
  std::string_view name;
  std::string_view hub_id;
  std::string_view licence;
  std::string_view config;
};

// As the weights' pages on the hub name them.
constexpr std::string_view kApache = "Apache 2.0", kMit = "MIT", kLlama2 = "Llama 2 Community",
                           kLlama3 = "Llama 3 Community", kLlama31 = "Llama 3.1 Community",
                           kLlama32 = "Llama 3.2 Community", kQwen = "Qwen", kQwenResearch = "Qwen Research";

constexpr std::array kPresets = {
    Preset{"llama-2-7b", "meta-llama/Llama-2-7b-hf", kLlama2,
           R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    Preset{"llama-2-13b", "meta-llama/Llama-2-13b-hf", kLlama2,
           R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 5120, "intermediate_size": 13824,
      "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 40, "max_position_embeddings": 4096,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    Preset{"llama-2-70b", "meta-llama/Llama-2-70b-hf", kLlama2,
           R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 8192, "intermediate_size": 28672,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 4096,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    Preset{"llama-3-8b", "meta-llama/Meta-Llama-3-8B", kLlama3,
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"llama-3-70b", "meta-llama/Meta-Llama-3-70B", kLlama3,
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
      "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
      "tie_word_embeddings": false, "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"llama-3.1-8b", "meta-llama/Llama-3.1-8B", kLlama31,
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"llama-3.1-70b", "meta-llama/Llama-3.1-70B", kLlama31,
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"llama-3.1-405b", "meta-llama/Llama-3.1-405B", kLlama31,
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 16384, "intermediate_size": 53248,
      "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
      "tie_word_embeddings": false,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192}, "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"llama-3.2-1b", "meta-llama/Llama-3.2-1B", kLlama32,
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
      "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": true,
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"llama-3.2-3b", "meta-llama/Llama-3.2-3B", kLlama32,
           R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 3072, "intermediate_size": 8192,
      "num_hidden_layers": 28, "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": true,
      "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192},
      "bos_token_id": 128000, "eos_token_id": 128001})"},
    Preset{"smollm-135m", "HuggingFaceTB/SmolLM-135M", kApache,
           R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
      "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 2048,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": true, "initializer_range": 0.02,
      "bos_token_id": 0, "eos_token_id": 0})"},
    Preset{"smollm2-135m", "HuggingFaceTB/SmolLM2-135M", kApache,
           R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 576, "intermediate_size": 1536,
      "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 100000, "tie_word_embeddings": true,
      "initializer_range": 0.041666666666666664, "bos_token_id": 0, "eos_token_id": 0})"},
    Preset{"smollm2-360m", "HuggingFaceTB/SmolLM2-360M", kApache,
           R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 960, "intermediate_size": 2560,
      "num_hidden_layers": 32, "num_attention_heads": 15, "num_key_value_heads": 5, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 100000, "tie_word_embeddings": true, "initializer_range": 0.02,
      "bos_token_id": 0, "eos_token_id": 0})"},
    Preset{"smollm2-1.7b", "HuggingFaceTB/SmolLM2-1.7B", kApache,
           R"({"model_type": "llama", "vocab_size": 49152, "hidden_size": 2048, "intermediate_size": 8192,
      "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-05, "rope_theta": 130000, "tie_word_embeddings": true, "initializer_range": 0.02,
      "bos_token_id": 0, "eos_token_id": 0})"},
    Preset{"smollm3-3b", "HuggingFaceTB/SmolLM3-3B", kApache,
           R"({"model_type": "smollm3", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008,
      "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4,
      "max_position_embeddings": 65536, "no_rope_layer_interval": 4, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 5000000.0, "tie_word_embeddings": true, "bos_token_id": 128000,
      "eos_token_id": 128012, "pad_token_id": 128004})"},
    Preset{"tinyllama-1.1b", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", kApache,
           R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632,
      "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 2048,
      "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    Preset{"mistral-7b-v0.1", "mistralai/Mistral-7B-v0.1", kApache,
           R"({"model_type": "mistral", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
      "max_position_embeddings": 32768, "sliding_window": 4096, "rms_norm_eps": 1e-05,
      "rope_theta": 10000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    Preset{"mistral-7b-v0.3", "mistralai/Mistral-7B-v0.3", kApache,
           R"({"model_type": "mistral", "vocab_size": 32768, "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
      "max_position_embeddings": 32768, "sliding_window": null, "rms_norm_eps": 1e-05,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2})"},
    Preset{"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B", kApache,
           R"({"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864,
      "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
      "max_position_embeddings": 32768, "use_sliding_window": false, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000.0, "tie_word_embeddings": true, "bos_token_id": 151643, "eos_token_id": 151643})"},
    Preset{"qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B", kApache,
           R"({"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 1536, "intermediate_size": 8960,
      "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
      "max_position_embeddings": 131072, "use_sliding_window": false, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000.0, "tie_word_embeddings": true, "bos_token_id": 151643, "eos_token_id": 151643})"},
    Preset{"qwen2.5-3b", "Qwen/Qwen2.5-3B", kQwenResearch,
           R"({"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 11008,
      "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2,
      "max_position_embeddings": 32768, "use_sliding_window": false, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000.0, "tie_word_embeddings": true, "bos_token_id": 151643, "eos_token_id": 151643})"},
    Preset{"qwen2.5-7b", "Qwen/Qwen2.5-7B", kApache,
           R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
      "max_position_embeddings": 131072, "use_sliding_window": false, "rms_norm_eps": 1e-06,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 151643,
      "eos_token_id": 151643})"},
    Preset{"qwen2.5-14b", "Qwen/Qwen2.5-14B", kApache,
           R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 5120, "intermediate_size": 13824,
      "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8,
      "max_position_embeddings": 131072, "use_sliding_window": false, "rms_norm_eps": 1e-05,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 151643,
      "eos_token_id": 151643})"},
    Preset{"qwen2.5-32b", "Qwen/Qwen2.5-32B", kApache,
           R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 5120, "intermediate_size": 27648,
      "num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads": 8,
      "max_position_embeddings": 131072, "use_sliding_window": false, "rms_norm_eps": 1e-05,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 151643,
      "eos_token_id": 151643})"},
    Preset{"qwen2.5-72b", "Qwen/Qwen2.5-72B", kQwen,
           R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
      "max_position_embeddings": 131072, "use_sliding_window": false, "rms_norm_eps": 1e-05,
      "rope_theta": 1000000.0, "tie_word_embeddings": false, "bos_token_id": 151643,
      "eos_token_id": 151643})"},
    Preset{"qwen3-0.6b", "Qwen/Qwen3-0.6B", kApache,
           R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072,
      "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": true,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    Preset{"qwen3-1.7b", "Qwen/Qwen3-1.7B", kApache,
           R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144,
      "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": true,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    Preset{"qwen3-4b", "Qwen/Qwen3-4B", kApache,
           R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 2560, "intermediate_size": 9728,
      "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": true,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    Preset{"qwen3-8b", "Qwen/Qwen3-8B", kApache,
           R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 12288,
      "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": false,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    Preset{"qwen3-14b", "Qwen/Qwen3-14B", kApache,
           R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 5120, "intermediate_size": 17408,
      "num_hidden_layers": 40, "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": false,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    Preset{"qwen3-32b", "Qwen/Qwen3-32B", kApache,
           R"({"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 5120, "intermediate_size": 25600,
      "num_hidden_layers": 64, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128,
      "max_position_embeddings": 40960, "attention_bias": false, "use_sliding_window": false,
      "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": false,
      "bos_token_id": 151643, "eos_token_id": 151645})"},
    Preset{"gpt2", "openai-community/gpt2", kMit,
           R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
    Preset{"gpt2-medium", "openai-community/gpt2-medium", kMit,
           R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 1024, "n_layer": 24, "n_head": 16,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
    Preset{"gpt2-large", "openai-community/gpt2-large", kMit,
           R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 1280, "n_layer": 36, "n_head": 20,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
    Preset{"gpt2-xl", "openai-community/gpt2-xl", kMit,
           R"({"model_type": "gpt2", "vocab_size": 50257, "n_embd": 1600, "n_layer": 48, "n_head": 25,
      "n_positions": 1024, "layer_norm_epsilon": 1e-05, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
      "bos_token_id": 50256, "eos_token_id": 50256})"},
};

/// Without what spellings of one architecture differ in: who publishes it, capitals, and what was made of the
/// base model.
std::string plain_name(std::string_view spelling) {
  std::string name(spelling.substr(spelling.rfind('/') + 1));
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.starts_with("meta-")) name.erase(0, 5);
  for (const std::string_view made : {"-hf", "-base", "-instruct", "-chat", "-it"})
    for (size_t at = 0; (at = name.find(made, at)) != std::string::npos;) {
      const size_t end = at + made.size();
      if (end == name.size() || name[end] == '-')
        name.erase(at, made.size());
      else
        at = end;
    }
  return name;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

std::vector<PresetInfo> presets() {
  std::vector<PresetInfo> list;
  for (const Preset& preset : kPresets) list.push_back({preset.name, preset.hub_id, preset.licence});
  return list;
}

std::optional<std::string_view> find_preset(std::string_view spelling) {
  for (const Preset& preset : kPresets)
    if (preset.name == spelling) return preset.name;
  const std::string name = plain_name(spelling);
  for (const Preset& preset : kPresets)
    if (plain_name(preset.name) == name || plain_name(preset.hub_id) == name) return preset.name;
  return std::nullopt;
}

Result<io::ConfigJson> preset_config(std::string_view name) {
  const std::optional<std::string_view> found = find_preset(name);
  for (const Preset& preset : kPresets)
    if (found && preset.name == *found)
      return io::parse_config_json(preset.config, "preset " + std::string(*found));
  return Error{ErrorCode::kInvalidArgument, "there is no preset '" + std::string(name.substr(0, 60)) + "'",
               "model.preset", io::nearest_hint(name, preset_names())};
}

}  // namespace plimsoll::models
