// ViT: the vision transformer with a head on its class token. Dosovitskiy et al. 2021, arXiv:2010.11929. With
// interpolate_pos_encoding in its config positions are resampled for images of another size, as transformers'
// model does where it is called with that.
#include "models/families.h"
#include "models/vision_transformer.h"

namespace plimsoll::models {
namespace {

/// The names of timm.
constexpr Renaming kVitInTimm[] = {
    {"vit.embeddings.cls_token", "cls_token"},
    {"vit.embeddings.position_embeddings", "pos_embed"},
    {"vit.embeddings.patch_embeddings.projection.", "patch_embed.proj."},
    {"vit.encoder.layer.#.layernorm_before.", "blocks.#.norm1."},
    {"vit.encoder.layer.#.attention.attention.query.", "blocks.#.attn.qkv."},
    {"vit.encoder.layer.#.attention.attention.key.", "blocks.#.attn.qkv."},
    {"vit.encoder.layer.#.attention.attention.value.", "blocks.#.attn.qkv."},
    {"vit.encoder.layer.#.attention.output.dense.", "blocks.#.attn.proj."},
    {"vit.encoder.layer.#.layernorm_after.", "blocks.#.norm2."},
    {"vit.encoder.layer.#.intermediate.dense.", "blocks.#.mlp.fc1."},
    {"vit.encoder.layer.#.output.dense.", "blocks.#.mlp.fc2."},
    {"vit.layernorm.", "norm."},
    {"classifier.", "head."},
};

Result<std::unique_ptr<Model>> make_vit(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(VisionTransformerConfig c, read_vision_transformer(config, /*patch=*/16));
  c.prefix = "vit.";
  c.names = {"layernorm_before", "layernorm_after", "intermediate.dense", "output.dense"};
  PLIMSOLL_ASSIGN(c.inner, config.integer("intermediate_size", {1, int64_t{1} << 22}, 3072));
  PLIMSOLL_ASSIGN(c.eps, config.number("layer_norm_eps", {0.0, 1.0}, 1e-12));
  c.hidden_dropout = c.embedding_dropout;
  PLIMSOLL_ASSIGN(c.interpolates, config.boolean("interpolate_pos_encoding", false));
  if (c.interpolates && c.rows() != c.columns())
    return config.error("interpolate_pos_encoding",
                        "false: positions are resampled from a square of patches");
  c.in_timm = kVitInTimm;
  c.ignored = {"vit.pooler.", "vit.embeddings.mask_token", "decoder."};
  // Of the pooler and of the decoder for masked images, which a classifier has not.
  config.ignore({"pooler_output_size", "pooler_act", "encoder_stride"});
  c.unknown_fields = finish_image_config(config);
  return std::unique_ptr<Model>(make_vision_transformer(std::move(c)));
}

constexpr std::string_view kVitProcessor =
    R"({"image_processor_type": "ViTImageProcessor", "do_resize": true, "size": {"height": 224, "width": 224},
      "resample": 2, "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true,
      "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})";

constexpr Preset kVitPresets[] = {
    {"vit-s-16", "WinKawaks/vit-small-patch16-224", "Apache 2.0", 22'050'664,
     R"({"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 384,
      "num_hidden_layers": 12, "num_attention_heads": 6, "intermediate_size": 1536, "image_size": 224,
      "patch_size": 16, "num_channels": 3, "layer_norm_eps": 1e-12, "qkv_bias": true, "num_labels": 1000})",
     kVitProcessor},
    {"vit-b-16", "google/vit-base-patch16-224", "Apache 2.0", 86'567'656,
     R"({"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 768,
      "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 224,
      "patch_size": 16, "num_channels": 3, "layer_norm_eps": 1e-12, "qkv_bias": true, "num_labels": 1000})",
     kVitProcessor},
};

constexpr std::string_view kVitLoraTargets[] = {"query", "value"};

constexpr Family kVitFamily{
    .model_type = "vit",
    .class_name = "ViT",
    .causal_class = "ForImageClassification",
    .make = make_vit,
    .lora_targets = kVitLoraTargets,
    .fields = {.kv_heads = {}, .positions = {"image_size"}, .vocabulary = {}, .lists_of_layers = {}},
    .sample = R"({"architectures": ["ViTForImageClassification"], "model_type": "vit", "hidden_size": 60,
    "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 84, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.1,
    "layer_norm_eps": 1e-12, "image_size": 35, "patch_size": 7, "num_channels": 3, "qkv_bias": true,
    "num_labels": 5})",
    .presets = kVitPresets};

}  // namespace

const Family& vit_family() { return kVitFamily; }

}  // namespace plimsoll::models
