// The model of ViT's kind: patches as tokens, a class token, learned positions, a pre-norm encoder without a
// mask. What families of the kind differ in is data in VisionTransformerConfig.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/image_config.h"
#include "models/image_model.h"
#include "models/timm.h"

namespace plimsoll::models {

/// What a family calls the tensors of a layer, behind "<prefix>encoder.layer.<n>.".
struct VisionLayerNames {
  std::string_view norm_before, norm_after, up, down;
};

struct VisionTransformerConfig {
  std::string prefix;  ///< of all tensors but the head's: "vit."
  VisionLayerNames names = {};
  int64_t hidden = 0, layers = 0, heads = 0, inner = 0;
  ImageExtent image = {}, patch = {};
  int64_t channels = 3;
  ops::Gelu gelu = ops::Gelu::kErf;
  double eps = 1e-12;
  double initializer_range = 0.02;
  bool qkv_bias = true;
  double embedding_dropout = 0, hidden_dropout = 0, attention_dropout = 0;
  std::optional<double> layer_scale = {};  ///< first value of the scales behind attention and MLP
  double drop_path = 0;                    ///< with which a sample's branch is left out, in every layer
  bool swiglu = false;                     ///< `inner` columns of a gate, then of what it gates
  bool mean_of_patches = false;            ///< the head reads the class token and the mean of the patches
  bool interpolates = false;               ///< positions, for images of another size
  std::span<const Renaming> in_timm = {};  ///< timm's names; "query", "key" and "value" are parts of "qkv"
  std::vector<std::string> ignored = {};   ///< tensors under the prefix that a classifier does not read
  int64_t num_labels = 0;
  std::vector<std::string> unknown_fields = {};

  [[nodiscard]] int64_t rows() const { return image.height / patch.height; }
  [[nodiscard]] int64_t columns() const { return image.width / patch.width; }
};

/// Reads the sizes that families of the kind share. Errors: kBadData naming the field.
Result<VisionTransformerConfig> read_vision_transformer(const io::ConfigJson& config, int64_t patch);

/// The model of a config that read_vision_transformer began and a family finished.
std::unique_ptr<ImageModel> make_vision_transformer(VisionTransformerConfig config);

}  // namespace plimsoll::models
