// ResNet, "v1.5" where the stride is in the 3x3 convolution. He et al. 2015, arXiv:1512.03385; names and
// layout of the tensors as in transformers' files.
//
//   pixels ─ conv 7x7/2 ─ BN ─ ReLU ─ max pool 3/2 ─ stages ─ mean ─ head
//   layer:  x ─ conv ─ BN ─ ReLU ─ … ─ conv ─ BN ─ + ─ ReLU
//           └──────── [conv 1x1 ─ BN] ────────────┘
#include <fmt/format.h>

#include <cmath>

#include "io/label_fields.h"
#include "models/blocks/batch_norm.h"
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

struct ResNetConfig {
  int64_t channels = 3, stem = 64;
  std::vector<int64_t> sizes = {}, depths = {};
  bool bottleneck = true;
  bool downsample_in_first_stage = false;
  bool downsample_in_bottleneck = false;  ///< by the first 1x1 convolution, else by the 3x3
  int64_t num_labels = 0;
  std::vector<std::string> unknown_fields = {};
};

/// One convolution with its norm.
struct Unit {
  std::string name;
  int64_t out = 0, in = 0, kernel = 1, stride = 1;
};

/// A residual layer: its convolutions in order, and what stands on its shortcut where the shapes differ.
struct Residual {
  std::vector<Unit> units;
  std::vector<Unit> shortcut;  ///< none or one
};

/// The names of timm and torchvision.
constexpr Renaming kResNetInTimm[] = {
    {"resnet.embedder.embedder.convolution.", "conv1."},
    {"resnet.embedder.embedder.normalization.", "bn1."},
    {"resnet.encoder.stages.#.layers.#.layer.#.convolution.", "layer+.#.conv+."},
    {"resnet.encoder.stages.#.layers.#.layer.#.normalization.", "layer+.#.bn+."},
    {"resnet.encoder.stages.#.layers.#.shortcut.convolution.", "layer+.#.downsample.0."},
    {"resnet.encoder.stages.#.layers.#.shortcut.normalization.", "layer+.#.downsample.1."},
    {"classifier.1.", "fc."},
};

class ResNet final : public ImageModel {
 public:
  explicit ResNet(ResNetConfig config) : c_(std::move(config)) {
    channels_ = c_.channels;
    num_labels_ = c_.num_labels;
    unknown_fields_ = c_.unknown_fields;
    stem_ = {"resnet.embedder.embedder", c_.stem, c_.channels, 7, 2};
    add_unit(stem_);
    int64_t in = c_.stem;
    for (size_t stage = 0; stage < c_.sizes.size(); ++stage)
      for (int64_t layer = 0; layer < c_.depths[stage]; ++layer) {
        const bool downsamples = layer == 0 && (stage > 0 || c_.downsample_in_first_stage);
        add_layer(fmt::format("resnet.encoder.stages.{}.layers.{}.", stage, layer), in, c_.sizes[stage],
                  downsamples ? 2 : 1);
        in = c_.sizes[stage];
      }
    if (num_labels_ == 0) return;
    const FirstValues uniform{Init::kUniform, 1.0 / std::sqrt(static_cast<double>(in))};
    add_linear("classifier.1", num_labels_, in, uniform, uniform);
  }

  ValueId features(Builder& b, const ImageForward& forward) const override {
    ValueId x;
    {
      const auto scope = b.scope("embedder");
      x = unit(b, stem_, forward.pixels, {.relu = true, .training = forward.training});
      x = ops::max_pool2d(b, x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    }
    for (size_t i = 0; i < layers_.size(); ++i) {
      const auto scope = b.block(static_cast<int32_t>(i), "layer." + std::to_string(i));
      x = residual(b, layers_[i], x, forward.training);
    }
    const ir::Shape shape = b.type(x).shape;
    const auto scope = b.scope("pool");
    return ops::reshape(b, ops::global_mean(b, x), {shape.dim(0), 1, shape.dim(3)});
  }

  ValueId scores(Builder& b, ValueId features) const override {
    const auto scope = b.scope("classifier");
    return linear(b, *this, {.weight = "classifier.1.weight", .bias = "classifier.1.bias"}, features);
  }

  [[nodiscard]] std::string_view base_prefix() const override { return "resnet."; }
  [[nodiscard]] std::string other_name(std::string_view name) const override {
    return renamed(kResNetInTimm, name);
  }
  [[nodiscard]] bool ignores_tensor(std::string_view name) const override {
    return num_labels_ == 0 && (is_of_head(name) || name.starts_with("fc."));
  }

 private:
  /// Kaiming's normal values by the fan of what leaves it, for ReLU.
  void add_unit(const Unit& u) {
    const double fan_out = static_cast<double>(u.out * u.kernel * u.kernel);
    add_filters(u.name + ".convolution", {u.out, u.kernel, u.kernel, u.in},
                {Init::kNormal, std::sqrt(2.0 / fan_out)});
    add_batch_norm({.name = u.name + ".normalization", .channels = u.out});
  }

  void add_layer(const std::string& name, int64_t in, int64_t out, int64_t stride) {
    Residual layer;
    const auto add = [&](int64_t to, int64_t from, int64_t kernel, int64_t by) {
      layer.units.push_back({fmt::format("{}layer.{}", name, layer.units.size()), to, from, kernel, by});
    };
    if (c_.bottleneck) {
      const int64_t inner = out / 4;
      add(inner, in, 1, c_.downsample_in_bottleneck ? stride : 1);
      add(inner, inner, 3, c_.downsample_in_bottleneck ? 1 : stride);
      add(out, inner, 1, 1);
    } else {
      add(out, in, 3, stride);
      add(out, out, 3, 1);
    }
    if (in != out || stride != 1) layer.shortcut.push_back({name + "shortcut", out, in, 1, stride});
    const size_t first = parameters_.size();
    for (const Unit& u : layer.shortcut) add_unit(u);
    for (const Unit& u : layer.units) add_unit(u);
    put_in_block(first, static_cast<int64_t>(layers_.size()));
    layers_.push_back(std::move(layer));
  }

  ValueId unit(Builder& b, const Unit& u, ValueId x, const BatchNormCall& call) const {
    const ValueId weight = read_parameter(b, u.name + ".convolution.weight");
    const int64_t padding = u.kernel / 2;
    const ValueId y =
        ops::conv2d(b, x, weight, {}, {.stride = {u.stride, u.stride}, .padding = {padding, padding}});
    return models::batch_norm(b, *this, u.name + ".normalization", y, call);
  }

  ValueId residual(Builder& b, const Residual& layer, ValueId x, bool training) const {
    ValueId shortcut = x;
    for (const Unit& u : layer.shortcut) {
      const auto scope = b.scope("shortcut");
      shortcut = unit(b, u, x, {.training = training});
    }
    for (size_t i = 0; i < layer.units.size(); ++i) {
      const auto scope = b.scope(std::to_string(i));
      const bool is_last = i + 1 == layer.units.size();
      x = unit(b, layer.units[i], x,
               {.residual = is_last ? shortcut : ValueId{}, .relu = true, .training = training});
    }
    return x;
  }

  ResNetConfig c_;
  Unit stem_;
  std::vector<Residual> layers_;
};

Result<ResNetConfig> parse_resnet_config(const io::ConfigJson& config) {
  ResNetConfig c;
  constexpr io::IntegerRange kWidth = {1, int64_t{1} << 20};
  PLIMSOLL_ASSIGN(c.channels, config.integer("num_channels", {1, 64}, 3));
  PLIMSOLL_ASSIGN(c.stem, config.integer("embedding_size", kWidth, 64));
  PLIMSOLL_ASSIGN(c.sizes, read_stages(config, "hidden_sizes", kMostChannels, {256, 512, 1024, 2048}));
  PLIMSOLL_ASSIGN(c.depths, read_stages(config, "depths", kMostLayers, {3, 4, 6, 3}));
  if (c.sizes.size() != c.depths.size())
    return config.error("depths", fmt::format("as many numbers as hidden_sizes, {}", c.sizes.size()));
  PLIMSOLL_ASSIGN(const std::string type, config.string("layer_type", "bottleneck"));
  if (type != "basic" && type != "bottleneck") return config.error("layer_type", "basic or bottleneck");
  c.bottleneck = type == "bottleneck";
  for (const int64_t size : c.sizes)
    if (c.bottleneck && size < 4) return config.error("hidden_sizes", "at least 4 in a bottleneck");
  PLIMSOLL_TRY(
      config.require("hidden_act", io::Tree::of(std::string("relu")), "other activations are not supported"));
  PLIMSOLL_ASSIGN(c.downsample_in_first_stage, config.boolean("downsample_in_first_stage", false));
  PLIMSOLL_ASSIGN(c.downsample_in_bottleneck, config.boolean("downsample_in_bottleneck", false));
  PLIMSOLL_ASSIGN(c.num_labels, io::num_classifier_labels(config));
  c.unknown_fields = finish_image_config(config);
  return c;
}

Result<std::unique_ptr<Model>> make_resnet(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(ResNetConfig parsed, parse_resnet_config(config));
  return std::unique_ptr<Model>(std::make_unique<ResNet>(std::move(parsed)));
}

constexpr std::string_view kResNetProcessor =
    R"({"image_processor_type": "ConvNextImageProcessor", "do_resize": true, "size": {"shortest_edge": 224},
      "crop_pct": 0.875, "resample": 3, "do_rescale": true, "rescale_factor": 0.00392156862745098,
      "do_normalize": true, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})";

constexpr Preset kResNetPresets[] = {
    {"resnet-18", "microsoft/resnet-18", "Apache 2.0", 11'689'512,
     R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "num_channels": 3,
      "embedding_size": 64, "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2], "layer_type": "basic",
      "hidden_act": "relu", "downsample_in_first_stage": false, "num_labels": 1000})",
     kResNetProcessor},
    {"resnet-50", "microsoft/resnet-50", "Apache 2.0", 25'557'032,
     R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "num_channels": 3,
      "embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3],
      "layer_type": "bottleneck", "hidden_act": "relu", "downsample_in_first_stage": false,
      "num_labels": 1000})",
     kResNetProcessor},
};

constexpr Family kResNetFamily{
    .model_type = "resnet",
    .class_name = "ResNet",
    .causal_class = "ForImageClassification",
    .make = make_resnet,
    .fields = {.layers = {"depths"},
               .hidden = {"hidden_sizes"},
               .heads = {},
               .kv_heads = {},
               .inner = {"embedding_size"},
               .positions = {},
               .vocabulary = {},
               .lists_of_layers = {}},
    .sample =
        R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "num_channels": 3,
    "embedding_size": 12, "hidden_sizes": [20, 36], "depths": [1, 2], "layer_type": "bottleneck",
    "hidden_act": "relu", "downsample_in_first_stage": false, "downsample_in_bottleneck": false,
    "num_labels": 5})",
    .presets = kResNetPresets};

}  // namespace

const Family& resnet_family() { return kResNetFamily; }

}  // namespace plimsoll::models
