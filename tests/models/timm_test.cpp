// timm's config.json files: the architectures that are known, the labels, and what is refused.
#include "models/timm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image_forward.h"
#include "io/label_fields.h"
#include "models/presets.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

Result<io::ConfigJson> timm_config(const char* text) {
  return from_timm(*io::parse_config_json(text, "config.json"));
}

TEST(Timm, IsTheSameNetworkInTransformersForm) {
  const auto config = timm_config(R"({"architecture": "resnet18", "num_classes": 1000, "num_features": 512,
      "pretrained_cfg": {"input_size": [3, 224, 224]}})");
  ASSERT_TRUE(config) << config.error().message();
  const auto model = make_image_model(*config), preset = make_image_model(*preset_config("resnet-18"));
  ASSERT_TRUE(model);
  EXPECT_EQ(tensor_list(**model), tensor_list(**preset));
  EXPECT_TRUE((*model)->unknown_fields().empty());
  EXPECT_NE(config->fields().find("pretrained_cfg"), nullptr);
  const auto wrapped = timm_config(
      R"({"model_type": "timm_wrapper", "architecture": "convnext_tiny", "num_classes": 2, "label_names": ["a", "b"]})");
  ASSERT_TRUE(wrapped) << wrapped.error().message();
  EXPECT_EQ(io::read_label_fields(*wrapped)->names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ((*make_image_model(*wrapped))->num_labels(), 2);
}

TEST(Timm, LeavesOtherConfigsAlone) {
  const auto config = timm_config(R"({"model_type": "vit", "architecture": "mine"})");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->fields().find("architecture")->text, "mine");
}

TEST(Timm, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {R"({"architecture": "resnet18d"})", R"({"architecture": "resnet18", "global_pool": "max"})",
        R"({"architecture": "resnet18", "model_args": {"output_stride": 16}})"}) {
    const auto config = timm_config(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, ErrorCode::kBadData);
  }
  EXPECT_THAT(timm_config(R"({"architecture": "vgg16"})").error().message(), HasSubstr("resnet18, resnet34"));
}

TEST(Timm, NamesEveryTensorOfTheFile) {
  const auto resnet =
      image_model_of(R"({"model_type": "resnet", "architectures": ["ResNetForImageClassification"],
      "num_labels": 3, "embedding_size": 8, "hidden_sizes": [16, 32], "depths": [1, 1]})");
  for (const auto& [ours, theirs] : std::initializer_list<std::pair<const char*, const char*>>{
           {"resnet.embedder.embedder.convolution.weight", "conv1.weight"},
           {"resnet.embedder.embedder.normalization.running_mean", "bn1.running_mean"},
           {"resnet.encoder.stages.1.layers.0.layer.2.convolution.weight", "layer2.0.conv3.weight"},
           {"resnet.encoder.stages.0.layers.3.layer.0.normalization.bias", "layer1.3.bn1.bias"},
           {"resnet.encoder.stages.2.layers.0.shortcut.convolution.weight", "layer3.0.downsample.0.weight"},
           {"resnet.encoder.stages.2.layers.0.shortcut.normalization.num_batches_tracked",
            "layer3.0.downsample.1.num_batches_tracked"},
           {"classifier.1.bias", "fc.bias"}})
    EXPECT_EQ(resnet->other_name(ours), theirs);
  const auto convnext =
      image_model_of(R"({"model_type": "convnext", "architectures": ["ConvNextForImageClassification"],
      "num_labels": 3, "num_stages": 2, "hidden_sizes": [8, 16], "depths": [1, 1]})");
  for (const auto& [ours, theirs] : std::initializer_list<std::pair<const char*, const char*>>{
           {"convnext.embeddings.patch_embeddings.weight", "stem.0.weight"},
           {"convnext.embeddings.layernorm.bias", "stem.1.bias"},
           {"convnext.encoder.stages.1.downsampling_layer.0.weight", "stages.1.downsample.0.weight"},
           {"convnext.encoder.stages.1.layers.2.dwconv.bias", "stages.1.blocks.2.conv_dw.bias"},
           {"convnext.encoder.stages.1.layers.2.layernorm.weight", "stages.1.blocks.2.norm.weight"},
           {"convnext.encoder.stages.1.layers.2.pwconv1.weight", "stages.1.blocks.2.mlp.fc1.weight"},
           {"convnext.encoder.stages.1.layers.2.layer_scale_parameter", "stages.1.blocks.2.gamma"},
           {"convnext.layernorm.weight", "head.norm.weight"},
           {"classifier.weight", "head.fc.weight"}})
    EXPECT_EQ(convnext->other_name(ours), theirs);
}

}  // namespace
}  // namespace plimsoll::models
