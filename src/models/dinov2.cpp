// DINOv2: a vision transformer with layer scale, whose positions are resampled for the size of the images and
// whose head reads the class token and the mean of the patches. Oquab et al. 2023, arXiv:2304.07193.
#include "models/families.h"
#include "models/vision_transformer.h"

namespace plimsoll::models {
namespace {

/// The names of timm.
constexpr Renaming kDinov2InTimm[] = {
    {"dinov2.embeddings.cls_token", "cls_token"},
    {"dinov2.embeddings.position_embeddings", "pos_embed"},
    {"dinov2.embeddings.patch_embeddings.projection.", "patch_embed.proj."},
    {"dinov2.encoder.layer.#.norm1.", "blocks.#.norm1."},
    {"dinov2.encoder.layer.#.attention.attention.query.", "blocks.#.attn.qkv."},
    {"dinov2.encoder.layer.#.attention.attention.key.", "blocks.#.attn.qkv."},
    {"dinov2.encoder.layer.#.attention.attention.value.", "blocks.#.attn.qkv."},
    {"dinov2.encoder.layer.#.attention.output.dense.", "blocks.#.attn.proj."},
    {"dinov2.encoder.layer.#.layer_scale1.lambda1", "blocks.#.ls1.gamma"},
    {"dinov2.encoder.layer.#.norm2.", "blocks.#.norm2."},
    {"dinov2.encoder.layer.#.mlp.fc1.", "blocks.#.mlp.fc1."},
    {"dinov2.encoder.layer.#.mlp.fc2.", "blocks.#.mlp.fc2."},
    {"dinov2.encoder.layer.#.mlp.weights_in.", "blocks.#.mlp.fc1."},
    {"dinov2.encoder.layer.#.mlp.weights_out.", "blocks.#.mlp.fc2."},
    {"dinov2.encoder.layer.#.layer_scale2.lambda1", "blocks.#.ls2.gamma"},
    {"dinov2.layernorm.", "norm."},
};

/// Columns of the MLP, of the gated one of each half: the ratio's, two thirds of them in whole eights.
int64_t dinov2_inner(double ratio, const VisionTransformerConfig& c) {
  const auto inner = static_cast<int64_t>(static_cast<double>(c.hidden) * ratio);
  return c.swiglu ? (static_cast<int64_t>(static_cast<double>(inner) * 2 / 3) + 7) / 8 * 8 : inner;
}

Result<std::unique_ptr<Model>> make_dinov2(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(VisionTransformerConfig c, read_vision_transformer(config, /*patch=*/14));
  c.prefix = "dinov2.";
  PLIMSOLL_ASSIGN(c.swiglu, config.boolean("use_swiglu_ffn", false));
  PLIMSOLL_ASSIGN(const double ratio, config.number("mlp_ratio", {0.0, 1 << 12}, 4));
  c.inner = dinov2_inner(ratio, c);
  if (c.inner < 1) return config.error("mlp_ratio", "a ratio that leaves the MLP a column");
  c.names = {"norm1", "norm2", c.swiglu ? "mlp.weights_in" : "mlp.fc1",
             c.swiglu ? "mlp.weights_out" : "mlp.fc2"};
  PLIMSOLL_ASSIGN(c.eps, config.number("layer_norm_eps", {0.0, 1.0}, 1e-6));
  PLIMSOLL_ASSIGN(c.layer_scale, config.number("layerscale_value", {-1e6, 1e6}, 1.0));
  PLIMSOLL_ASSIGN(c.drop_path, config.number("drop_path_rate", {0.0, 0.999}, 0.0));
  if (c.interpolates = c.rows() == c.columns(); !c.interpolates)
    return config.error("image_size", "a square of patches, as positions are resampled from one");
  c.mean_of_patches = true;
  c.in_timm = kDinov2InTimm;
  c.ignored = {"dinov2.embeddings.mask_token"};
  config.ignore({"use_mask_token"});
  c.unknown_fields = finish_image_config(config);
  return std::unique_ptr<Model>(make_vision_transformer(std::move(c)));
}

constexpr std::string_view kDinov2Processor =
    R"({"image_processor_type": "BitImageProcessor", "do_resize": true, "size": {"shortest_edge": 256},
      "resample": 3, "do_center_crop": true, "crop_size": {"height": 224, "width": 224}, "do_rescale": true,
      "rescale_factor": 0.00392156862745098, "do_normalize": true, "do_convert_rgb": true,
      "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})";

constexpr Preset kDinov2Presets[] = {
    {"dinov2-s", "facebook/dinov2-small", "Apache 2.0", 22'056'192,
     R"({"architectures": ["Dinov2Model"], "model_type": "dinov2", "hidden_size": 384, "num_hidden_layers": 12,
      "num_attention_heads": 6, "mlp_ratio": 4, "image_size": 518, "patch_size": 14, "num_channels": 3,
      "layer_norm_eps": 1e-06, "layerscale_value": 1.0, "drop_path_rate": 0.0, "use_swiglu_ffn": false,
      "qkv_bias": true})",
     kDinov2Processor},
};

constexpr std::string_view kDinov2LoraTargets[] = {"query", "value"};

constexpr Family kDinov2Family{
    .model_type = "dinov2",
    .class_name = "Dinov2",
    .causal_class = "ForImageClassification",
    .make = make_dinov2,
    .lora_targets = kDinov2LoraTargets,
    .fields =
        {.kv_heads = {}, .inner = {}, .positions = {"image_size"}, .vocabulary = {}, .lists_of_layers = {}},
    .sample =
        R"({"architectures": ["Dinov2ForImageClassification"], "model_type": "dinov2", "hidden_size": 60,
    "num_hidden_layers": 2, "num_attention_heads": 3, "mlp_ratio": 3, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.1,
    "layer_norm_eps": 1e-06, "layerscale_value": 0.7, "drop_path_rate": 0.0, "use_swiglu_ffn": false,
    "image_size": 35, "patch_size": 7, "num_channels": 3, "qkv_bias": true, "num_labels": 5})",
    .presets = kDinov2Presets};

}  // namespace

const Family& dinov2_family() { return kDinov2Family; }

}  // namespace plimsoll::models
