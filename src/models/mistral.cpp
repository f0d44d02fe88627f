// Mistral: Llama without biases, every layer with the same sliding window, or none where sliding_window is
// null. Jiang et al. 2023, arXiv:2310.06825.
#include <algorithm>

#include "models/decoder_config.h"

namespace plimsoll::models {

Result<DecoderConfig> parse_mistral_config(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(DecoderConfig c,
                  read_decoder_config(config, "mistral", {.max_position_embeddings = 131072}));
  constexpr int64_t kDefaultWindow = 4096;  // transformers', where the field is left out
  const bool left_out = config.fields().find("sliding_window") == nullptr;
  PLIMSOLL_ASSIGN(const auto given, config.optional_integer("sliding_window", {1, int64_t{1} << 28}));
  const int64_t window = left_out ? kDefaultWindow : given.value_or(0);
  std::ranges::fill(c.windows, window);
  if (const io::Tree* types = config.fields().find("layer_types"); types != nullptr && !types->is_null()) {
    if (types->kind != io::Tree::Kind::kList) return config.error("layer_types", "a list of attention types");
    for (const io::Tree& type : types->items)
      if (type.text != (window > 0 ? "sliding_attention" : "full_attention"))
        return config.error("layer_types", "the same attention in every layer, as sliding_window says");
  }
  config.ignore({"layer_types"});
  PLIMSOLL_TRY(finish_decoder_config(config, c));
  return c;
}

}  // namespace plimsoll::models
