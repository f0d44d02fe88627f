// Dosovitskiy et al. 2021, arXiv:2010.11929; names and layout of the tensors as in transformers' files.
//
//   patches ──────┬─ + positions ─ layers ─ token 0 ─ norm ─ head
//   class token ──┘
//   layer:  x ─ norm ─ attention ─ [· scale] ─ + x ─ norm ─ MLP ─ [· scale] ─ +
#include "models/vision_transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/blocks/attention.h"
#include "models/blocks/drop_path.h"
#include "models/blocks/dropout.h"
#include "models/blocks/mlp.h"
#include "models/blocks/norm.h"
#include "models/blocks/position_grid.h"
#include "models/linear.h"
#include "ops/conv2d.h"
#include "ops/ops.h"

namespace plimsoll::models {
namespace {

using ir::Builder;
using ir::ValueId;

constexpr const char* kHeadWeight = "classifier.weight";
constexpr const char* kHeadBias = "classifier.bias";
constexpr const char* kResampling = "positions.resampling";
constexpr int64_t kMostResampled = int64_t{1} << 27;  ///< elements of its matrix, 512 MiB

class VisionTransformer final : public ImageModel {
 public:
  explicit VisionTransformer(VisionTransformerConfig config) : c_(std::move(config)), image_(c_.image) {
    image_size_ = image_.height == image_.width ? image_.height : 0;
    channels_ = c_.channels;
    num_labels_ = c_.num_labels;
    unknown_fields_ = c_.unknown_fields;
    add_table("embeddings.cls_token", 1);
    add_table("embeddings.position_embeddings", 1 + c_.rows() * c_.columns());
    add_patches();
    for (int64_t i = 0; i < c_.layers; ++i) {
      const size_t first = parameters_.size();
      add_layer(layer_name(i));
      put_in_block(first, i);
    }
    add_norm(c_.prefix + "layernorm", c_.hidden);
    if (num_labels_ > 0) add_linear("classifier", num_labels_, head_width(), drawn());
  }

  Status take_images(int64_t height, int64_t width) override {
    const ImageExtent asked{height, width};
    const bool is_whole = height >= c_.patch.height && width >= c_.patch.width;
    if (!is_whole || (asked != c_.image && !c_.interpolates))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("images of {} x {} pixels do not fit the model's {} x {}", height, width,
                               c_.image.height, c_.image.width),
                   "data.images.size",
                   "leave the size to the model, or resample its positions: "
                   "model.overrides.interpolate_pos_encoding=true"};
    image_ = asked;
    constants_.clear();
    if (is_resampled() && resampling_shape().num_elements() > kMostResampled)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("images of {} x {} pixels have too many patches", height, width),
                   "data.images.size", "choose a smaller one"};
    if (is_resampled()) constants_.push_back({kResampling, resampling_shape(), resampling()});
    return Ok{};
  }

  ValueId features(Builder& b, const ImageForward& forward) const override {
    ValueId x;
    {
      const auto scope = b.scope("embeddings");
      x = dropout(b, forward.noise(), embedded(b, forward.pixels), c_.embedding_dropout);
    }
    for (int64_t i = 0; i < c_.layers; ++i) {
      const auto scope = b.block(static_cast<int32_t>(i), "layer." + std::to_string(i));
      x = layer(b, forward, x, i);
    }
    return pool(b, x);
  }

  ValueId scores(Builder& b, ValueId features) const override {
    const auto scope = b.scope("classifier");
    return linear(b, *this, {.weight = kHeadWeight, .bias = kHeadBias}, features);
  }

  [[nodiscard]] std::string_view base_prefix() const override { return c_.prefix; }
  [[nodiscard]] std::string other_name(std::string_view name) const override {
    return renamed(c_.in_timm, name);
  }
  [[nodiscard]] RowPart other_part(std::string_view name) const override {
    if (c_.in_timm.empty()) return {};
    for (const auto& [index, part] :
         {std::pair(0, ".query."), std::pair(1, ".key."), std::pair(2, ".value.")})
      if (name.find(part) != std::string_view::npos) return {index, 3};
    return {};
  }
  [[nodiscard]] bool ignores_tensor(std::string_view name) const override {
    return std::ranges::any_of(c_.ignored, [&](const auto& start) { return name.starts_with(start); }) ||
           (num_labels_ == 0 && is_of_head(name));
  }

 private:
  [[nodiscard]] std::string layer_name(int64_t i) const {
    return fmt::format("{}encoder.layer.{}.", c_.prefix, i);
  }
  [[nodiscard]] int64_t head_width() const { return (c_.mean_of_patches ? 2 : 1) * c_.hidden; }
  [[nodiscard]] int64_t head_dim() const { return c_.hidden / c_.heads; }

  // ---- parameters

  void add_table(const std::string& name, int64_t rows) {
    const ir::Shape shape{rows, c_.hidden};
    const std::string full = c_.prefix + name;
    parameters_.push_back({full,
                           ParameterKind::kTable,
                           shape,
                           Init::kNormal,
                           c_.initializer_range,
                           {{full, 0, shape, FileForm::kAxisBefore}}});
  }
  void add_patches() {
    const std::string name = c_.prefix + "embeddings.patch_embeddings.projection";
    add_filters(name, {c_.hidden, c_.patch.height, c_.patch.width, c_.channels}, drawn());
    add_vector(name + ".bias", c_.hidden, {Init::kZeros, 0});
  }
  [[nodiscard]] FirstValues drawn() const { return {Init::kNormal, c_.initializer_range}; }
  [[nodiscard]] FirstValues scale() const { return {Init::kConstant, c_.layer_scale.value_or(1)}; }
  /// q, k and v, which one product computes.
  void add_qkv(const std::string& attention) {
    Parameter weight{attention + "qkv.weight",   ParameterKind::kLinear,
                     {3 * c_.hidden, c_.hidden}, Init::kNormal,
                     c_.initializer_range,       {}};
    Parameter bias{attention + "qkv.bias", ParameterKind::kVector, {3 * c_.hidden}, Init::kZeros, 0.0, {}};
    int64_t row = 0;
    for (const char* part : {"query", "key", "value"}) {
      weight.views.push_back({attention + part + ".weight", row, {c_.hidden, c_.hidden}});
      bias.views.push_back({attention + part + ".bias", row, {c_.hidden}});
      row += c_.hidden;
    }
    parameters_.push_back(std::move(weight));
    if (c_.qkv_bias) parameters_.push_back(std::move(bias));
  }

  void add_layer(const std::string& layer) {
    add_norm(layer + std::string(c_.names.norm_before), c_.hidden);
    add_qkv(layer + "attention.attention.");
    add_linear(layer + "attention.output.dense", c_.hidden, c_.hidden, drawn());
    if (c_.layer_scale) add_vector(layer + "layer_scale1.lambda1", c_.hidden, scale());
    add_norm(layer + std::string(c_.names.norm_after), c_.hidden);
    add_linear(layer + std::string(c_.names.up), (c_.swiglu ? 2 : 1) * c_.inner, c_.hidden, drawn());
    add_linear(layer + std::string(c_.names.down), c_.hidden, c_.inner, drawn());
    if (c_.layer_scale) add_vector(layer + "layer_scale2.lambda1", c_.hidden, scale());
  }

  // ---- the graph

  ValueId norm(Builder& b, ValueId x, const std::string& name) const {
    return layer_norm(b, *this, x, name, c_.eps);
  }
  static LinearSpec with_bias(const std::string& name) {
    return {.weight = name + ".weight", .bias = name + ".bias"};
  }
  /// The class token and the patches, with their positions: [N, T, hidden].
  ValueId embedded(Builder& b, ValueId pixels) const {
    const std::string projection = c_.prefix + "embeddings.patch_embeddings.projection";
    const int64_t images = b.type(pixels).shape.dim(0);
    const ValueId patches =
        ops::conv2d(b, pixels, read_parameter(b, projection + ".weight"),
                    read_parameter(b, projection + ".bias"), {.stride = {c_.patch.height, c_.patch.width}});
    const int64_t count = num_patches();
    const ValueId token = embed(b, *this, c_.prefix + "embeddings.cls_token", ops::positions(b, images, 1));
    const ValueId rows = ops::concat(b, {ops::reshape(b, token, {images, c_.hidden}),
                                         ops::reshape(b, patches, {images, count * c_.hidden})});
    return ops::add(b, ops::reshape(b, rows, {images, 1 + count, c_.hidden}),
                    positions_of(b, images, 1 + count));
  }
  [[nodiscard]] int64_t num_patches() const {
    return (image_.height / c_.patch.height) * (image_.width / c_.patch.width);
  }

  /// The positions of every image: [N, T, hidden].
  ValueId positions_of(Builder& b, int64_t images, int64_t tokens) const {
    const std::string table = c_.prefix + "embeddings.position_embeddings";
    if (!is_resampled()) return embed(b, *this, table, ops::positions(b, images, tokens));
    const int64_t old = c_.rows() * c_.columns();
    const ValueId all = embed(b, *this, table, ops::positions(b, images, 1 + old));
    return resample_positions(b, all, read_constant(b, kResampling));
  }
  /// As transformers decides: by the number of patches, and only where the image is square.
  [[nodiscard]] bool is_resampled() const {
    return c_.interpolates && (num_patches() != c_.rows() * c_.columns() || image_.height != image_.width);
  }
  [[nodiscard]] ir::Shape resampling_shape() const { return {num_patches(), c_.rows() * c_.columns()}; }
  [[nodiscard]] std::vector<float> resampling() const {
    return resampling_matrix(c_.rows(), image_.height / c_.patch.height, image_.width / c_.patch.width);
  }

  ValueId layer(Builder& b, const ImageForward& forward, ValueId x, int64_t index) const {
    const std::string name = layer_name(index);
    {
      const auto scope = b.scope("attention");
      const ValueId out =
          attention(b, *this, {.tokens = {}, .training = forward.training, .random = forward.random},
                    attention_of(index), norm(b, x, name + std::string(c_.names.norm_before)));
      x = joined(b, forward, x, out, name + "layer_scale1.lambda1");
    }
    const auto scope = b.scope("mlp");
    const MlpSpec mlp{with_bias(name + std::string(c_.names.up)),
                      with_bias(name + std::string(c_.names.down))};
    const ValueId in = norm(b, x, name + std::string(c_.names.norm_after));
    const ValueId out =
        c_.swiglu ? gated_mlp(b, *this, mlp, in, c_.inner, {Activation::Kind::kSilu}, forward.noise())
                  : gelu_mlp(b, *this, mlp, in, c_.gelu, forward.noise());
    return joined(b, forward, x, out, name + "layer_scale2.lambda1");
  }

  /// x + branch, which is dropped, scaled or left out as the family says.
  ValueId joined(Builder& b, const ImageForward& forward, ValueId x, ValueId branch,
                 const std::string& scale) const {
    branch = dropout(b, forward.noise(), branch, c_.hidden_dropout);
    const ValueId gamma = c_.layer_scale ? read_parameter(b, scale) : ValueId{};
    return add_branch(b, forward, x, branch, gamma, c_.drop_path);
  }

  [[nodiscard]] AttentionSpec attention_of(int64_t index) const {
    const std::string prefix = layer_name(index) + "attention.";
    LinearSpec qkv = with_bias(prefix + "attention.qkv");
    if (!c_.qkv_bias) qkv.bias.clear();
    return {.qkv = std::move(qkv),
            .out = with_bias(prefix + "output.dense"),
            .heads = c_.heads,
            .kv_heads = c_.heads,
            .head_dim = head_dim(),
            .options = {.scale = 1.0 / std::sqrt(static_cast<double>(head_dim())),
                        .causal = false,
                        .dropout = c_.attention_dropout},
            .layer = index};
  }

  /// What the head reads of each image: [N, 1, hidden], or twice as wide.
  ValueId pool(Builder& b, ValueId x) const {
    const auto scope = b.scope("pool");
    const int64_t images = b.type(x).shape.dim(0);
    const ValueId first = ops::reshape(b, ops::positions(b, images, 1), {images});
    if (!c_.mean_of_patches) return norm(b, ops::gather_rows(b, x, first), c_.prefix + "layernorm");
    const ValueId rows = norm(b, x, c_.prefix + "layernorm");
    const ValueId mean =
        ops::reduce(b, ops::Reduce::kMean, ops::slice(b, rows, 1, 1, num_patches()), {1}, /*keep=*/true);
    return ops::concat(b, {ops::gather_rows(b, rows, first), mean});
  }

  VisionTransformerConfig c_;
  ImageExtent image_;  ///< of the images that it takes
};

}  // namespace

std::unique_ptr<ImageModel> make_vision_transformer(VisionTransformerConfig config) {
  return std::make_unique<VisionTransformer>(std::move(config));
}

}  // namespace plimsoll::models
