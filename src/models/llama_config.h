// The Llama family's config.json (llama, mistral) as plain numbers, checked so that no product of them
// overflows and nothing that changes the mathematics is passed over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"

namespace plimsoll {

/// Rotary position embedding: base and the scaling of its frequencies.
struct RopeConfig {
  enum class Kind { kDefault, kLinear, kLlama3 };
  Kind kind = Kind::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                              ///< kLinear, kLlama3
  double low_freq_factor = 1.0;                     ///< kLlama3
  double high_freq_factor = 4.0;                    ///< kLlama3
  int64_t original_max_position_embeddings = 8192;  ///< kLlama3

  /// The head_dim/2 inverse frequencies, computed in fp32 step by step as transformers does, because the
  /// tables are compared with its.
  [[nodiscard]] std::vector<float> inverse_frequencies(int64_t head_dim) const;
};

/// Sizes and switches of a Llama-like decoder.
struct LlamaConfig {
  std::string model_type = "llama";  ///< llama | mistral
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  bool attention_bias = false;                 ///< on q, k, v and o
  bool mlp_bias = false;                       ///< on gate, up and down
  std::optional<int64_t> sliding_window = {};  ///< a query sees this many positions, itself included
  RopeConfig rope = {};
  std::optional<int64_t> bos_token_id = {};
  std::optional<int64_t> pad_token_id = {};
  std::vector<int64_t> eos_token_ids = {};
  std::vector<std::string> unknown_fields =
      {};  ///< fields of the file that mean nothing to us, for a message

  /// Trainable numbers, a tied head counted once.
  [[nodiscard]] int64_t num_parameters() const;
};

/// Errors: kBadData naming the field, its value and the range; also for a rope type, an activation or any
/// other field that would change the mathematics and is not supported.
Result<LlamaConfig> parse_llama_config(const ConfigJson& config);

}  // namespace plimsoll
