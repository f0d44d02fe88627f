// The config.json fields of Llama-like families: one struct for all, whose switches hold what differs. A
// reader for each family stands in the family's own file (models/families.h lists them).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"
#include "models/rope_config.h"

namespace plimsoll::models {

/// Sizes and switches of a pre-norm decoder with RMS norms, rotary positions, grouped KV heads and SwiGLU,
/// checked so that no product of them overflows and nothing that changes the mathematics is passed over.
struct DecoderConfig {
  std::string model_type;
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
  double attention_dropout = 0;
  int64_t num_labels = 0;  ///< of a sequence classifier's head; 0: the head is a language model's
  bool tie_word_embeddings = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;               ///< on gate, up and down
  bool qk_norm = false;                ///< RMS norms of each query's and key's head, before the rotation
  std::vector<int64_t> windows = {};   ///< a layer: positions that a query sees, itself included; 0: all
  std::vector<bool> rope_layers = {};  ///< a layer: whether its queries and keys are rotated
  RopeConfig rope = {};
  std::optional<int64_t> bos_token_id = {};
  /// The row of the embedding that no token trains (torch's padding_idx); a negative one counts from the end.
  std::optional<int64_t> pad_token_id = {};
  std::vector<int64_t> eos_token_ids = {};
  std::vector<std::string> unknown_fields = {};  ///< of the file, that mean nothing here; for a message

  /// Trainable numbers, a tied head counted once.
  [[nodiscard]] int64_t num_parameters() const;
};

/// What a family's class in transformers sets where config.json says nothing.
struct DecoderDefaults {
  int64_t max_position_embeddings = 2048;
  int64_t head_dim = 0;             ///< 0: hidden_size / num_attention_heads
  bool kv_heads_are_heads = false;  ///< num_key_value_heads may be left out
  double rope_theta = 10000.0;
  bool tied = false;  ///< tie_word_embeddings
};

/// Reads what all have in common; biases, norms, windows and layers without rotation are the caller's.
/// Errors: kBadData naming the field, its value and the range; also for a rope type, an activation or any
/// other field that would change the mathematics and is not supported.
Result<DecoderConfig> read_decoder_config(const io::ConfigJson& config, std::string_view model_type,
                                          const DecoderDefaults& defaults);
/// The windows of a family with use_sliding_window, sliding_window, max_window_layers and layer_types: layers
/// from max_window_layers on slide, unless layer_types says which.
Status read_layer_windows(const io::ConfigJson& config, DecoderConfig& decoder);
/// layer_types over `windows`, an entry a layer, which hold what `otherwise` (a field, for the message) says
/// of the layers where it is left out; sliding layers have `window`, 0 where the config has none.
Status read_layer_types(const io::ConfigJson& config, int64_t window, std::string_view otherwise,
                        std::vector<int64_t>& windows);
/// Refuses what none of them supports and lists the fields that nobody read. The last call of a parser.
Status finish_decoder_config(const io::ConfigJson& config, DecoderConfig& decoder);

}  // namespace plimsoll::models
