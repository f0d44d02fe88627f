// Qwen2 and Qwen2.5: Llama with biases on q, k and v always and nowhere else; some layers may slide.
// Yang et al. 2024, arXiv:2407.10671.
#include "models/decoder_config.h"

namespace plimsoll::models {

Result<DecoderConfig> parse_qwen2_config(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(DecoderConfig c, read_decoder_config(config, "qwen2", {.max_position_embeddings = 32768}));
  c.qkv_bias = true;
  PLIMSOLL_TRY(read_layer_windows(config, c));
  PLIMSOLL_TRY(finish_decoder_config(config, c));
  return c;
}

}  // namespace plimsoll::models
