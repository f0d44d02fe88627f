// Qwen3: queries and keys are normalised head by head before the rotation; a head_dim of its own; some layers
// may slide. Yang et al. 2025, arXiv:2505.09388.
#include "models/decoder_config.h"

namespace plimsoll::models {

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

}  // namespace plimsoll::models
