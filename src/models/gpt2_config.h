// GPT-2's config.json as plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"

namespace plimsoll {

/// Sizes of a GPT-2; the head is always tied, every projection has a bias, the activation is gelu_new (tanh).
struct Gpt2Config {
  int64_t vocab_size = 0;
  int64_t n_embd = 0;
  int64_t n_layer = 0;
  int64_t n_head = 0;
  int64_t n_positions = 0;
  int64_t n_inner = 0;  ///< 4 * n_embd where the file says nothing
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  std::optional<int64_t> bos_token_id = {};
  std::vector<int64_t> eos_token_ids = {};
  std::vector<std::string> unknown_fields = {};

  [[nodiscard]] int64_t head_dim() const { return n_embd / n_head; }
  [[nodiscard]] int64_t num_parameters() const;
};

/// Errors: kBadData naming the field, its value and the range. Dropout other than 0 is refused by name.
Result<Gpt2Config> parse_gpt2_config(const ConfigJson& config);

}  // namespace plimsoll
