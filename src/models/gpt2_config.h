// GPT-2's config.json as plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"
#include "ops/gelu.h"

namespace plimsoll::models {

/// Sizes and switches of a GPT-2; every projection but the head has a bias.
struct Gpt2Config {
  int64_t vocab_size = 0;
  int64_t n_embd = 0;
  int64_t n_layer = 0;
  int64_t n_head = 0;
  int64_t n_positions = 0;
  int64_t n_inner = 0;                ///< 4 * n_embd where the file says nothing
  ops::Gelu gelu = ops::Gelu::kTanh;  ///< activation_function, gelu_new where the file says nothing
  int64_t num_labels = 0;             ///< of a sequence classifier's head; 0: the head is a language model's
  bool tie_word_embeddings = true;
  bool scale_attn_weights = true;    ///< scores by 1/sqrt(head_dim)
  bool scale_attn_by_layer = false;  ///< and by 1/(layer + 1): scale_attn_by_inverse_layer_idx
  double embd_pdrop = 0.1;           ///< as transformers has it where the file says nothing
  double resid_pdrop = 0.1;
  double attn_pdrop = 0.1;
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  std::optional<int64_t> bos_token_id = {};
  std::vector<int64_t> eos_token_ids = {};
  std::vector<std::string> unknown_fields = {};

  [[nodiscard]] int64_t head_dim() const { return n_embd / n_head; }
  [[nodiscard]] int64_t num_parameters() const;
};

/// Reads the family's own names of sizes (n_embd, ...) and the common ones (hidden_size, ...).
/// Errors: kBadData naming the field, its value and the range, or the field that is not supported.
Result<Gpt2Config> parse_gpt2_config(const io::ConfigJson& config);

}  // namespace plimsoll::models
