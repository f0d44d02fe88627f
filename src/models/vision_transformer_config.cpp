#include <fmt/format.h>

#include "io/label_fields.h"
#include "models/vision_transformer.h"

namespace plimsoll::models {

Result<VisionTransformerConfig> read_vision_transformer(const io::ConfigJson& config, int64_t patch) {
  VisionTransformerConfig c;
  PLIMSOLL_ASSIGN(c.hidden, config.integer("hidden_size", {1, int64_t{1} << 20}, 768));
  PLIMSOLL_ASSIGN(c.layers, config.integer("num_hidden_layers", {1, 512}, 12));
  PLIMSOLL_ASSIGN(c.heads, config.integer("num_attention_heads", {1, 1 << 16}, 12));
  if (c.hidden % c.heads != 0)
    return config.error("num_attention_heads", fmt::format("a divisor of hidden_size ({})", c.hidden));
  PLIMSOLL_ASSIGN(c.image, read_extent(config, "image_size", 224));
  PLIMSOLL_ASSIGN(c.patch, read_extent(config, "patch_size", patch));
  if (c.rows() < 1 || c.columns() < 1)
    return config.error("patch_size",
                        fmt::format("at most image_size, {} x {}", c.image.height, c.image.width));
  PLIMSOLL_ASSIGN(c.channels, config.integer("num_channels", {1, 64}, 3));
  PLIMSOLL_ASSIGN(c.gelu, read_gelu(config));
  PLIMSOLL_ASSIGN(c.initializer_range, config.number("initializer_range", {0.0, 100.0}, 0.02));
  PLIMSOLL_ASSIGN(c.qkv_bias, config.boolean("qkv_bias", true));
  constexpr io::NumberRange kDropout = {0.0, 0.999};
  PLIMSOLL_ASSIGN(c.embedding_dropout, config.number("hidden_dropout_prob", kDropout, 0.0));
  PLIMSOLL_ASSIGN(c.attention_dropout, config.number("attention_probs_dropout_prob", kDropout, 0.0));
  PLIMSOLL_TRY(config.require_absent({"head_dim"}));
  PLIMSOLL_ASSIGN(c.num_labels, io::num_classifier_labels(config));
  return c;
}

}  // namespace plimsoll::models
