// Llama: the decoder as it is, with biases where asked for. SmolLM2 and TinyLlama are Llamas too.
// Touvron et al. 2023, arXiv:2302.13971; Llama 3: Dubey et al. 2024, arXiv:2407.21783.
#include "models/decoder_config.h"

namespace plimsoll::models {

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

}  // namespace plimsoll::models
