// ConvNeXt: depthwise 7x7 convolutions, layer norms and pointwise MLPs. Liu et al. 2022, arXiv:2201.03545;
// names and layout of the tensors as in transformers' files.
//
//   pixels ─ patches ─ norm ─ stages ─ mean ─ norm ─ head
//   stage:  [norm ─ conv 2x2/2] ─ layers
//   layer:  x ─ dwconv 7x7 ─ norm ─ linear ─ GELU ─ linear ─ · scale ─ + x
#include <fmt/format.h>

#include <numeric>

#include "io/label_fields.h"
#include "models/blocks/drop_path.h"
#include "models/blocks/mlp.h"
#include "models/blocks/norm.h"
#include "models/families.h"
#include "models/image_config.h"
#include "models/image_model.h"
#include "models/linear.h"
#include "models/timm.h"
#include "ops/conv2d.h"
#include "ops/ops.h"
#include "ops/pooling.h"

namespace plimsoll::models {
namespace {

using ir::Builder;
using ir::ValueId;

/// Of the norms within, whatever config.json says of the last.
constexpr double kInnerEps = 1e-6;
constexpr int64_t kKernel = 7;

struct ConvNextConfig {
  int64_t channels = 3, image_size = 0;
  ImageExtent patch = {};
  std::vector<int64_t> sizes = {}, depths = {};
  ops::Gelu gelu = ops::Gelu::kErf;
  double initializer_range = 0.02, eps = 1e-12, layer_scale = 1e-6, drop_path = 0;
  int64_t num_labels = 0;
  std::vector<std::string> unknown_fields = {};
};

/// The names of timm.
constexpr Renaming kConvNextInTimm[] = {
    {"convnext.embeddings.patch_embeddings.", "stem.0."},
    {"convnext.embeddings.layernorm.", "stem.1."},
    {"convnext.encoder.stages.#.downsampling_layer.", "stages.#.downsample."},
    {"convnext.encoder.stages.#.layers.#.dwconv.", "stages.#.blocks.#.conv_dw."},
    {"convnext.encoder.stages.#.layers.#.layernorm.", "stages.#.blocks.#.norm."},
    {"convnext.encoder.stages.#.layers.#.pwconv", "stages.#.blocks.#.mlp.fc"},
    {"convnext.encoder.stages.#.layers.#.layer_scale_parameter", "stages.#.blocks.#.gamma"},
    {"convnext.layernorm.", "head.norm."},
    {"classifier.", "head.fc."},
};

class ConvNext final : public ImageModel {
 public:
  explicit ConvNext(ConvNextConfig config) : c_(std::move(config)) {
    image_size_ = c_.image_size;
    channels_ = c_.channels;
    num_labels_ = c_.num_labels;
    unknown_fields_ = c_.unknown_fields;
    add_convolution("convnext.embeddings.patch_embeddings", c_.sizes[0], c_.patch, c_.channels);
    add_norm("convnext.embeddings.layernorm", c_.sizes[0]);
    int64_t block = 0;
    for (size_t i = 0; i < c_.sizes.size(); ++i) {
      if (i > 0) {
        add_norm(stage_name(i) + "downsampling_layer.0", c_.sizes[i - 1]);
        add_convolution(stage_name(i) + "downsampling_layer.1", c_.sizes[i], {2, 2}, c_.sizes[i - 1]);
      }
      for (int64_t j = 0; j < c_.depths[i]; ++j) {
        const size_t first = parameters_.size();
        add_layer(layer_name(i, j), c_.sizes[i]);
        put_in_block(first, block++);
      }
    }
    add_norm("convnext.layernorm", c_.sizes.back());
    if (num_labels_ > 0) add_linear("classifier", num_labels_, c_.sizes.back(), drawn());
  }

  Status take_images(int64_t height, int64_t width) override {
    const int64_t halved = int64_t{1} << (c_.sizes.size() - 1);
    if (height >= c_.patch.height * halved && width >= c_.patch.width * halved) return Ok{};
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("images of {} x {} pixels are too small for the model's last stage", height, width),
        "data.images.size",
        fmt::format("use at least {} x {}", c_.patch.height * halved, c_.patch.width * halved)};
  }

  ValueId features(Builder& b, const ImageForward& forward) const override {
    ValueId x;
    {
      const auto scope = b.scope("embeddings");
      x = patches(b, "convnext.embeddings.patch_embeddings", forward.pixels, c_.patch);
      x = layer_norm(b, *this, x, "convnext.embeddings.layernorm", kInnerEps);
    }
    int32_t block = 0;
    for (size_t i = 0; i < c_.sizes.size(); ++i) {
      if (i > 0) x = downsampled(b, x, i);
      for (int64_t j = 0; j < c_.depths[i]; ++j, ++block) {
        const auto scope = b.block(block, fmt::format("stages.{}.layers.{}", i, j));
        x = layer(b, forward, x, layer_name(i, j), drop_path_of(block));
      }
    }
    const ir::Shape shape = b.type(x).shape;
    const auto scope = b.scope("pool");
    x = ops::reshape(b, ops::global_mean(b, x), {shape.dim(0), 1, shape.dim(3)});
    return layer_norm(b, *this, x, "convnext.layernorm", c_.eps);
  }

  ValueId scores(Builder& b, ValueId features) const override {
    const auto scope = b.scope("classifier");
    return linear(b, *this, {.weight = "classifier.weight", .bias = "classifier.bias"}, features);
  }

  [[nodiscard]] std::string_view base_prefix() const override { return "convnext."; }
  [[nodiscard]] std::string other_name(std::string_view name) const override {
    return renamed(kConvNextInTimm, name);
  }
  [[nodiscard]] bool ignores_tensor(std::string_view name) const override {
    return num_labels_ == 0 && (is_of_head(name) || name.starts_with("head.fc."));
  }

 private:
  static std::string stage_name(size_t i) { return fmt::format("convnext.encoder.stages.{}.", i); }
  static std::string layer_name(size_t i, int64_t j) { return fmt::format("{}layers.{}.", stage_name(i), j); }
  [[nodiscard]] FirstValues drawn() const { return {Init::kNormal, c_.initializer_range}; }
  /// From 0 in the first layer to drop_path_rate in the last, in even steps.
  [[nodiscard]] double drop_path_of(int32_t block) const {
    const int64_t last = std::accumulate(c_.depths.begin(), c_.depths.end(), int64_t{0}) - 1;
    return last == 0 ? 0 : c_.drop_path * block / static_cast<double>(last);
  }

  void add_convolution(const std::string& name, int64_t out, const ImageExtent& kernel, int64_t in) {
    add_filters(name, {out, kernel.height, kernel.width, in}, drawn());
    add_vector(name + ".bias", out, {Init::kZeros, 0});
  }
  void add_layer(const std::string& name, int64_t width) {
    if (c_.layer_scale > 0)
      add_vector(name + "layer_scale_parameter", width, {Init::kConstant, c_.layer_scale});
    add_convolution(name + "dwconv", width, {kKernel, kKernel}, 1);
    add_norm(name + "layernorm", width);
    add_linear(name + "pwconv1", 4 * width, width, drawn());
    add_linear(name + "pwconv2", width, 4 * width, drawn());
  }

  /// Of windows that lie side by side.
  ValueId patches(Builder& b, const std::string& name, ValueId x, const ImageExtent& window) const {
    return ops::conv2d(b, x, read_parameter(b, name + ".weight"), read_parameter(b, name + ".bias"),
                       {.stride = {window.height, window.width}});
  }
  ValueId downsampled(Builder& b, ValueId x, size_t stage) const {
    const auto scope = b.scope(fmt::format("stages.{}.downsampling_layer", stage));
    x = layer_norm(b, *this, x, stage_name(stage) + "downsampling_layer.0", kInnerEps);
    return patches(b, stage_name(stage) + "downsampling_layer.1", x, {2, 2});
  }

  ValueId layer(Builder& b, const ImageForward& forward, ValueId x, const std::string& name,
                double drop_path) const {
    const int64_t width = b.type(x).shape.dim(3);
    ValueId branch =
        ops::conv2d(b, x, read_parameter(b, name + "dwconv.weight"), read_parameter(b, name + "dwconv.bias"),
                    {.padding = {kKernel / 2, kKernel / 2}, .groups = width});
    branch = layer_norm(b, *this, branch, name + "layernorm", kInnerEps);
    const MlpSpec mlp{{.weight = name + "pwconv1.weight", .bias = name + "pwconv1.bias"},
                      {.weight = name + "pwconv2.weight", .bias = name + "pwconv2.bias"}};
    branch = gelu_mlp(b, *this, mlp, branch, c_.gelu, forward.noise());
    const ValueId gamma = c_.layer_scale > 0 ? read_parameter(b, name + "layer_scale_parameter") : ValueId{};
    return add_branch(b, forward, x, branch, gamma, drop_path);
  }

  ConvNextConfig c_;
};

Result<ConvNextConfig> parse_convnext_config(const io::ConfigJson& config) {
  ConvNextConfig c;
  PLIMSOLL_ASSIGN(c.channels, config.integer("num_channels", {1, 64}, 3));
  PLIMSOLL_ASSIGN(c.patch, read_extent(config, "patch_size", 4));
  PLIMSOLL_ASSIGN(const ImageExtent image, read_extent(config, "image_size", 224));
  c.image_size = image.height == image.width ? image.height : 0;
  PLIMSOLL_ASSIGN(c.sizes, read_stages(config, "hidden_sizes", kMostChannels, {96, 192, 384, 768}));
  PLIMSOLL_ASSIGN(c.depths, read_stages(config, "depths", kMostLayers, {3, 3, 9, 3}));
  if (c.sizes.size() != c.depths.size())
    return config.error("depths", fmt::format("as many numbers as hidden_sizes, {}", c.sizes.size()));
  const auto stages = static_cast<int64_t>(c.sizes.size());
  if (stages > 16) return config.error("depths", "at most 16 stages");
  PLIMSOLL_ASSIGN(const int64_t said, config.integer("num_stages", {1, 1 << 16}, 4));
  if (said != stages) return config.error("num_stages", fmt::format("{}, as depths has", stages));
  PLIMSOLL_ASSIGN(c.gelu, read_gelu(config));
  PLIMSOLL_ASSIGN(c.initializer_range, config.number("initializer_range", {0.0, 100.0}, 0.02));
  PLIMSOLL_ASSIGN(c.eps, config.number("layer_norm_eps", {0.0, 1.0}, 1e-12));
  PLIMSOLL_ASSIGN(c.layer_scale, config.number("layer_scale_init_value", {-1e6, 1e6}, 1e-6));
  PLIMSOLL_ASSIGN(c.drop_path, config.number("drop_path_rate", {0.0, 0.999}, 0.0));
  PLIMSOLL_ASSIGN(c.num_labels, io::num_classifier_labels(config));
  c.unknown_fields = finish_image_config(config);
  return c;
}

Result<std::unique_ptr<Model>> make_convnext(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(ConvNextConfig parsed, parse_convnext_config(config));
  return std::unique_ptr<Model>(std::make_unique<ConvNext>(std::move(parsed)));
}

constexpr std::string_view kConvNextProcessor =
    R"({"image_processor_type": "ConvNextImageProcessor", "do_resize": true, "size": {"shortest_edge": 224},
      "crop_pct": 0.875, "resample": 3, "do_rescale": true, "rescale_factor": 0.00392156862745098,
      "do_normalize": true, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})";

constexpr Preset kConvNextPresets[] = {
    {"convnext-tiny", "facebook/convnext-tiny-224", "Apache 2.0", 28'589'128,
     R"({"architectures": ["ConvNextForImageClassification"], "model_type": "convnext", "num_channels": 3,
      "patch_size": 4, "num_stages": 4, "hidden_sizes": [96, 192, 384, 768], "depths": [3, 3, 9, 3],
      "layer_norm_eps": 1e-12, "layer_scale_init_value": 1e-06, "drop_path_rate": 0.0, "image_size": 224,
      "num_labels": 1000})",
     kConvNextProcessor},
};

constexpr Family kConvNextFamily{
    .model_type = "convnext",
    .class_name = "ConvNext",
    .causal_class = "ForImageClassification",
    .make = make_convnext,
    .fields = {.layers = {"depths"},
               .hidden = {"hidden_sizes"},
               .heads = {},
               .kv_heads = {},
               .inner = {},
               .positions = {"image_size"},
               .vocabulary = {},
               .lists_of_layers = {}},
    .sample = R"({"architectures": ["ConvNextForImageClassification"], "model_type": "convnext",
    "num_channels": 3, "patch_size": 3, "num_stages": 2, "hidden_sizes": [12, 20], "depths": [1, 2],
    "hidden_act": "gelu", "initializer_range": 0.1, "layer_norm_eps": 1e-12, "layer_scale_init_value": 0.7,
    "drop_path_rate": 0.0, "image_size": 35, "num_labels": 5})",
    .presets = kConvNextPresets};

}  // namespace

const Family& convnext_family() { return kConvNextFamily; }

}  // namespace plimsoll::models
